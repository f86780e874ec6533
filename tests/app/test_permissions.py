"""Which permissions a mode needs with a configuration."""

from collections.abc import Iterable

import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.app.permissions import (
    Mode,
    Need,
    Needs,
    Permission,
    every_permission,
    needs_of,
    permissions_of,
)
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.objects.kinds import KIND_OF

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
# Two plugins that every profile needs, and nothing else.
FEWEST = """
profiles:
- schedulerName: few
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}MORE]
"""
UNGUARDED = {
    "create tokenreviews.authentication.k8s.io",
    "create subjectaccessreviews.authorization.k8s.io",
}
WATCHED = {"list nodes", "watch nodes", "list pods", "watch pods"}
WRITTEN = {
    "create pods/binding",
    "get pods",
    "patch pods/status",
    "create events.events.k8s.io",
    "patch events.events.k8s.io",
}
LED = {
    "create leases.coordination.k8s.io in kube-system",
    "get leases.coordination.k8s.io in kube-system of few",
    "update leases.coordination.k8s.io in kube-system of few",
}


def needs(text: str) -> Needs:
    loaded = load_config(HEAD + text, file="test")
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    return needs_of(loaded.config, built.profiles, built.extender_settings)


def with_plugin(name: str, args: str = "{}") -> str:
    more = f", {{name: {name}}}"
    return FEWEST.replace("MORE", more) + f"  pluginConfig: [{{name: {name}, args: {args}}}]\n"


def in_words(permissions: Iterable[Permission]) -> set[str]:
    return {
        f"{verb} {permission.resource}"
        + (f".{permission.group}" if permission.group else "")
        + (f" in {permission.namespace}" if permission.namespace else "")
        + (f" of {', '.join(permission.names)}" if permission.names else "")
        for permission in permissions
        for verb in permission.verbs
    }


FEW = FEWEST.replace("MORE", "")


@pytest.mark.parametrize(
    ("mode", "config", "want"),
    [
        pytest.param(
            Mode.SCHEDULER, FEW, WATCHED | WRITTEN | LED | UNGUARDED, id="bind and lead, as usual"
        ),
        pytest.param(
            Mode.SCHEDULER,
            FEW + "leaderElection: {leaderElect: false}\n",
            WATCHED | WRITTEN | UNGUARDED,
            id="touch no lease where nobody is elected",
        ),
        pytest.param(Mode.EXTENDER, FEW, WATCHED | UNGUARDED, id="write nothing as an extender"),
        pytest.param(Mode.SHADOW, FEW, WATCHED, id="read nothing but nodes and pods as a shadow"),
        pytest.param(Mode.DOCTOR, FEW, {"list nodes", "list pods"}, id="list as the doctor"),
        pytest.param(
            Mode.RECORD,
            with_plugin("PodTopologySpread"),
            WATCHED
            | {
                f"{verb} {resource}"
                for verb in ("list", "watch")
                for resource in (
                    "services",
                    "replicationcontrollers",
                    "replicasets.apps",
                    "statefulsets.apps",
                )
            },
            id="watch what a plugin depends on",
        ),
        pytest.param(
            Mode.EXTENDER,
            with_plugin("NodeUsage"),
            WATCHED | UNGUARDED | {"list nodes.metrics.k8s.io"},
            id="ask metrics-server for NodeUsage",
        ),
        pytest.param(
            Mode.DOCTOR,
            with_plugin(
                "NetworkTraffic", "{prometheusAddress: 'kube-service://monitoring/https:prom:web'}"
            ),
            {"list nodes", "list pods", "get services/proxy in monitoring of https:prom:web"},
            id="ask the one Prometheus behind the API server that is named",
        ),
        pytest.param(
            Mode.SHADOW,
            with_plugin("NetworkTraffic", "{prometheusAddress: 'http://prom:9090'}"),
            WATCHED,
            id="need nothing for a Prometheus that is asked directly",
        ),
    ],
)
def test_rights(mode: Mode, config: str, want: set[str]) -> None:
    assert in_words(permissions_of(mode, needs(config))) == want


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param("DefaultPreemption", {"delete pods"}, id="DefaultPreemption: evict"),
        pytest.param(
            "VolumeBinding",
            {"patch persistentvolumes", "patch persistentvolumeclaims"},
            id="VolumeBinding: bind volumes",
        ),
    ],
)
def test_what_is_written_for_a_plugin(plugin: str, want: set[str]) -> None:
    more = in_words(permissions_of(Mode.SCHEDULER, needs(with_plugin(plugin))))
    written = {each for each in more if each.split()[0] not in {"list", "watch"}}
    assert written == WRITTEN | LED | UNGUARDED | want


@pytest.mark.parametrize(
    ("bind", "more"),
    [
        pytest.param("true", {"create pods/binding", "get pods"}, id="bind: true"),
        pytest.param("false", set(), id="bind: false"),
    ],
)
def test_an_extender_may_bind_where_its_configuration_says(bind: str, more: set[str]) -> None:
    entry = f"  pluginConfig: [{{name: Extender, args: {{bind: {bind}}}}}]\n"
    found = in_words(permissions_of(Mode.EXTENDER, needs(FEW + entry)))
    assert found == WATCHED | UNGUARDED | more


def test_a_shadow_asks_who_may_see_it_only_where_it_serves_others() -> None:
    few = needs(FEW)
    serving = Needs(few.plugins_by_kind, few.needs | {Need.SERVING})
    assert in_words(permissions_of(Mode.SHADOW, serving)) == WATCHED | UNGUARDED


def test_the_whole_table_has_every_kind_that_plugins_may_name() -> None:
    watched = {
        permission.resource for permission in every_permission() if permission.need is Need.A_PLUGIN
    }
    assert watched == {kind.plural for kind in KIND_OF.values()}
