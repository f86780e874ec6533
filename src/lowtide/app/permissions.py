"""What each mode may ask of the API server, as one table. `lowtide rbac` prints it as RBAC
objects (app/roles); the roles in deploy/ and the table in the docs are made of it too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from lowtide.app.registry import requests_of
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.config.types import KubeSchedulerConfiguration
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.objects.kinds import KIND_OF, Kind
from lowtide.plugins import BUILT_IN
from lowtide.plugins.volume_binding import VolumeBinding
from lowtide.readings.address import ServiceAddress, parse_address
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.readings.request import TrafficRequest
from lowtide.readings.usage import UsageRequest


class Mode(StrEnum):
    SCHEDULER = "scheduler"
    EXTENDER = "extender"
    SHADOW = "shadow"
    RECORD = "record"
    DOCTOR = "doctor"


class Need(StrEnum):
    """What of a configuration makes a permission necessary, in words for the docs."""

    ALWAYS = "always"
    A_PLUGIN = "one of these plugins"
    PREEMPTION = "a plugin evicts pods (DefaultPreemption)"
    VOLUMES = "VolumeBinding"
    LEADER_ELECTION = "leaderElection.leaderElect"
    USAGE = "NodeUsage"
    SERVICE_PROXY = "a Prometheus at kube-service://"
    BINDING = "bind: true of the extender"
    SERVING = "--bind-address beyond loopback"


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one resource: in one namespace, or everywhere where none is named; of the objects
    with these names, or of all where there are none."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    modes: frozenset[Mode]
    need: Need = Need.ALWAYS
    namespace: str = ""
    names: tuple[str, ...] = ()


_SCHEDULER: Final = frozenset({Mode.SCHEDULER})
_WATCHING: Final = frozenset({Mode.SCHEDULER, Mode.EXTENDER, Mode.SHADOW, Mode.RECORD})
_MEASURING: Final = _WATCHING | {Mode.DOCTOR}
_DOCTOR: Final = frozenset({Mode.DOCTOR})
_SHADOW: Final = frozenset({Mode.SHADOW})
_BINDING: Final = frozenset({Mode.EXTENDER})
# Who serves others as a rule, and who may.
_SERVING: Final = (
    (frozenset({Mode.SCHEDULER, Mode.EXTENDER}), Need.ALWAYS),
    (_SHADOW, Need.SERVING),
)

LIST_AND_WATCH: Final = ("list", "watch")
# Filled in by the configuration: the names of the lease and of Prometheus's Service.
LEASE: Final = "LEASE"
SERVICE: Final = "SERVICE:PORT"
_THEIR_NAMESPACE: Final = "NAMESPACE"
SYSTEM: Final = "kube-system"

_LOOK: Final = "to see what became of a binding or an eviction whose answer was lost"

TABLE: Final[tuple[Permission, ...]] = (
    Permission("", "nodes", LIST_AND_WATCH, "where pods can go", _WATCHING),
    Permission("", "pods", LIST_AND_WATCH, "what waits, and what is taken on nodes", _WATCHING),
    Permission("", "nodes", ("list",), "which nodes should be measured", _DOCTOR),
    Permission("", "pods", ("list",), "in whose network exporters run", _DOCTOR),
    Permission("", "pods/binding", ("create",), "to bind pods", _SCHEDULER),
    Permission("", "pods/binding", ("create",), "to bind pods", _BINDING, Need.BINDING),
    Permission("", "pods", ("get",), _LOOK, _SCHEDULER),
    Permission("", "pods", ("get",), _LOOK, _BINDING, Need.BINDING),
    Permission("", "pods/status", ("patch",), "conditions and nominated nodes", _SCHEDULER),
    Permission("", "pods", ("delete",), "to evict pods for others", _SCHEDULER, Need.PREEMPTION),
    Permission("events.k8s.io", "events", ("create", "patch"), "Events about pods", _SCHEDULER),
    *(
        Permission(
            "", resource, ("patch",), "to bind volumes before their pod", _SCHEDULER, Need.VOLUMES
        )
        for resource in ("persistentvolumeclaims", "persistentvolumes")
    ),
    Permission(
        *("coordination.k8s.io", "leases", ("create",)),
        why="to lead by a lease; permission to create cannot name what is created",
        modes=_SCHEDULER,
        need=Need.LEADER_ELECTION,
        namespace=_THEIR_NAMESPACE,
    ),
    Permission(
        *("coordination.k8s.io", "leases", ("get", "update")),
        why="to hold the lease",
        modes=_SCHEDULER,
        need=Need.LEADER_ELECTION,
        namespace=_THEIR_NAMESPACE,
        names=(LEASE,),
    ),
    Permission("metrics.k8s.io", "nodes", ("list",), "what nodes use", _WATCHING, Need.USAGE),
    Permission(
        *("", "services/proxy", ("get",)),
        why="to ask Prometheus through the API server",
        modes=_MEASURING,
        need=Need.SERVICE_PROXY,
        namespace=_THEIR_NAMESPACE,
        names=(SERVICE,),
    ),
    *(
        Permission(group, resource, ("create",), why, modes, need)
        for modes, need in _SERVING
        for group, resource, why in (
            (
                "authentication.k8s.io",
                "tokenreviews",
                "who asks for /metrics, where it is served beyond loopback",
            ),
            ("authorization.k8s.io", "subjectaccessreviews", "whether they may"),
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Needs:
    """What one configuration needs."""

    plugins_by_kind: Mapping[type, tuple[str, ...]]
    needs: frozenset[Need]
    lease: tuple[str, str] = (SYSTEM, "")  # namespace and name
    services: tuple[ServiceAddress, ...] = ()


def needs_of(
    config: KubeSchedulerConfiguration,
    profiles: Mapping[str, Profile],
    settings: Mapping[str, ExtenderSettings],
) -> Needs:
    """But for whom a shadow serves, which a flag says."""
    plugins: list[Any] = [plugin for profile in profiles.values() for plugin in profile.plugins]
    services = tuple(dict.fromkeys(_services(profiles.values())))
    election = config.leader_election
    found = {
        Need.ALWAYS: True,
        Need.A_PLUGIN: True,
        Need.PREEMPTION: any(hasattr(plugin, "post_filter") for plugin in plugins),
        Need.VOLUMES: any(plugin.name == VolumeBinding.name for plugin in plugins),
        Need.LEADER_ELECTION: election.leader_elect,
        Need.USAGE: bool(requests_of(profiles.values(), UsageRequest)),
        Need.SERVICE_PROXY: bool(services),
        Need.BINDING: any(each.bind for each in settings.values()),
    }
    return Needs(
        plugins_by_kind(profiles.values()),
        frozenset(need for need, is_there in found.items() if is_there),
        lease=(election.resource_namespace, election.resource_name),
        services=services,
    )


def permissions_of(mode: Mode, needs: Needs) -> list[Permission]:
    """What the mode needs with that configuration, and nothing else."""
    watched = [_watched(KIND_OF[kind], plugins) for kind, plugins in needs.plugins_by_kind.items()]
    rows = [row for row in (*TABLE, *watched) if mode in row.modes and row.need in needs.needs]
    return [filled for row in rows for filled in _filled(row, needs)]


def every_permission() -> list[Permission]:
    """For people: the table, and what the built-in plugins depend on."""
    plugins: dict[type, tuple[str, ...]] = {}
    for built_in in BUILT_IN:
        for kind in getattr(built_in.plugin, "kinds", ()):
            plugins[kind] = (*plugins.get(kind, ()), built_in.name)
    return [*TABLE, *(_watched(KIND_OF[kind], names) for kind, names in plugins.items())]


def _watched(kind: Kind[Any], plugins: Iterable[str]) -> Permission:
    _, _, path = kind.api.partition("/apis/")
    group = path.partition("/")[0]
    return Permission(
        group, kind.plural, LIST_AND_WATCH, f"for {', '.join(plugins)}", _WATCHING, Need.A_PLUGIN
    )


def _filled(row: Permission, needs: Needs) -> list[Permission]:
    """The row with the names that the configuration says."""
    if row.need is Need.LEADER_ELECTION:
        namespace, name = needs.lease
        return [replace(row, namespace=namespace, names=(name,) if row.names else ())]
    if row.need is Need.SERVICE_PROXY:
        return [
            replace(row, namespace=service.namespace, names=(service.service,))
            for service in needs.services
        ]
    return [row]


def _services(profiles: Iterable[Profile]) -> Iterable[ServiceAddress]:
    profiles = list(profiles)
    asked: list[TrafficRequest | PrometheusQuery] = [
        *requests_of(profiles, TrafficRequest),
        *requests_of(profiles, PrometheusQuery),
    ]
    for request in asked:
        for address in request.access.addresses:
            parsed = parse_address(address) if address else None
            if isinstance(parsed, ServiceAddress):
                yield parsed
