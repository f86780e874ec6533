"""The doctor: lists the nodes, and has examined what each request of the profiles measures. It
reads, and changes nothing."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import msgspec

from lowtide.app.clocks import Clock
from lowtide.app.examining import Examined, Examining, Wanted, wanted_of
from lowtide.doctor.evidence import ScrapedPod
from lowtide.doctor.findings import Finding, Severity, worst_first
from lowtide.doctor.reach import no_nodes, no_traffic_plugin, nodes_not_listed
from lowtide.framework.profile import Profile
from lowtide.kube.connection import Connection
from lowtide.kube.errors import ApiError, KubeError
from lowtide.kube.kubeconfig import Access, KubeconfigError
from lowtide.kube.listing import list_all
from lowtide.kube.service_proxy import ServiceProxy
from lowtide.objects.meta import ObjectMeta, Wire
from lowtide.objects.node import Node
from lowtide.readings.series import Series


@dataclass(frozen=True, slots=True)
class DoctorParts:
    """`access` is how the API server is reached, or why it cannot be. `clock` never jumps;
    `wall_clock` is compared with Prometheus's. `tell` is told what is being done. An address that
    is given is asked instead of those that the profiles name."""

    access: Access | KubeconfigError
    profiles: Mapping[str, Profile]
    clock: Clock
    wall_clock: Clock
    tell: Callable[[str], None]
    prometheus_address: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    server: str  # empty where it is not known
    node_count: int | None  # None where they could not be listed
    requests: tuple[Examined, ...]
    findings: tuple[Finding, ...]
    is_reached: bool = True  # the server has answered, if only with a rejection

    @property
    def is_well(self) -> bool:
        return all(found.severity is not Severity.FAULT for found in self.findings)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What could not be looked at, each once."""
        return tuple(dict.fromkeys(each for found in self.findings for each in found.unchecked))


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    host_network: bool = False


class _PodAddress(Wire, frozen=True):
    ip: str = ""


class _PodStatus(Wire, frozen=True):
    address: str = msgspec.field(default="", name="podIP")
    addresses: list[_PodAddress] = msgspec.field(default_factory=list, name="podIPs")


class _ListedPod(Wire, frozen=True):
    """Of a pod only what tells where an exporter runs: there may be many pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class Doctor:
    def __init__(self, parts: DoctorParts) -> None:
        self._parts = parts
        self._connection = (
            None
            if isinstance(parts.access, KubeconfigError)
            else Connection(parts.access, parts.wall_clock)
        )
        self._examining = Examining(
            clock=parts.clock,
            wall_clock=parts.wall_clock,
            proxy=None if self._connection is None else ServiceProxy(self._connection),
            pods_of=self._listed_pods,
            tell=parts.tell,
        )
        self._pods: list[ScrapedPod] | None = None
        self._is_reached = self._connection is not None

    async def run(self) -> Report:
        async with self._connection or nullcontext():
            listed, findings = await self._listed_nodes()
            nodes = listed or []
            wanted = wanted_of(self._parts.profiles)
            if not wanted:
                findings.append(no_traffic_plugin(self._parts.profiles))
            done = [await self._examining.examine(self._redirected(each), nodes) for each in wanted]
            findings += [finding for each in done for finding in each.findings]
        server = "" if self._connection is None else self._connection.server
        node_count = None if listed is None else len(listed)
        return Report(
            server, node_count, tuple(done), worst_first(findings), is_reached=self._is_reached
        )

    async def _listed_nodes(self) -> tuple[list[Node] | None, list[Finding]]:
        if self._connection is None:
            return None, [nodes_not_listed(str(self._parts.access), is_forbidden=False)]
        self._parts.tell(f"Listing the nodes of {self._connection.server}")
        try:
            nodes = await list_all(self._connection, "/api/v1/nodes", Node)
        except KubeError as error:
            self._is_reached = isinstance(error, ApiError)
            is_forbidden = isinstance(error, ApiError) and error.status in (401, 403)
            return None, [nodes_not_listed(str(error), is_forbidden=is_forbidden)]
        return nodes, [] if nodes else [no_nodes(self._connection.server)]

    def _redirected(self, wanted: Wanted) -> Wanted:
        address = self._parts.prometheus_address
        if address is None:
            return wanted
        access = msgspec.structs.replace(wanted.request.access, addresses=(address,))
        return replace(wanted, request=msgspec.structs.replace(wanted.request, access=access))

    async def _listed_pods(self, _: Sequence[Series]) -> Sequence[ScrapedPod]:
        if self._pods is None:
            self._pods = await self._list_pods()
        return self._pods

    async def _list_pods(self) -> list[ScrapedPod]:
        """None of them where they may not be listed: the checks then go by less."""
        if self._connection is None:
            return []
        self._parts.tell("Listing pods, to see in whose network exporters run")
        try:
            pods = await list_all(self._connection, "/api/v1/pods", _ListedPod)
        except KubeError:
            return []
        return [
            ScrapedPod(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                node_name=pod.spec.node_name,
                is_on_host_network=pod.spec.host_network,
                addresses=tuple(
                    dict.fromkeys(
                        filter(None, [pod.status.address, *(a.ip for a in pod.status.addresses)])
                    )
                ),
            )
            for pod in pods
        ]
