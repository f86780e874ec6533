"""PodTopologySpread's constraints: the pod's own, the defaults, the selector that defaults get."""

from typing import Any

import msgspec
import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.cluster.pod_selection import PodSelection
from lowtide.cluster.state import ClusterState
from lowtide.config.errors import ConfigError
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Registry
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from lowtide.plugins import BUILT_IN
from lowtide.plugins.pod_topology_spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraint,
    Constraints,
    PodTopologySpreadArgs,
)
from lowtide.testing import make_pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def spreading(*constraints: dict[str, Any], **labels: str) -> Pod:
    return make_pod(labels=labels, spec={"topologySpreadConstraints": list(constraints)})


def zone(**more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": DO_NOT_SCHEDULE,
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def equal(**labels: str) -> list[LabelRequirement]:
    return [LabelRequirement(key, "In", [value]) for key, value in labels.items()]


def selecting(*requirements: LabelRequirement, namespace: str = "default") -> PodSelection:
    return PodSelection.from_requirements(
        requirements, namespaces=[namespace], counts_terminating=False
    )


def constraint(**different: Any) -> Constraint:
    known: dict[str, Any] = {
        "topology_key": "zone",
        "max_skew": 2,
        "min_domains": 1,
        "honors_affinity": True,
        "honors_taints": False,
        "selection": selecting(*equal(app="web")),
    }
    return Constraint(**{**known, **different})


def found(
    pod: Pod,
    action: str = DO_NOT_SCHEDULE,
    *,
    args: PodTopologySpreadArgs | None = None,
    state: ClusterState | None = None,
) -> list[Constraint]:
    nodes = (state or ClusterState()).nodes()
    return Constraints((args or PodTopologySpreadArgs()).constraints).constraints_for(
        pod, nodes, action
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(zone(), constraint(), id="has default policies"),
        pytest.param(zone(minDomains=3), constraint(min_domains=3), id="reads minDomains"),
        pytest.param(
            zone(nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"),
            constraint(honors_affinity=False, honors_taints=True),
            id="reads nodeAffinityPolicy and nodeTaintsPolicy",
        ),
        pytest.param(
            zone(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            constraint(selection=selecting(LabelRequirement("app", "Exists"))),
            id="reads matchExpressions",
        ),
        pytest.param(
            zone(matchLabelKeys=["hash", "absent"]),
            constraint(selection=selecting(*equal(hash="1", app="web"))),
            id="adds the pod's values of matchLabelKeys",
        ),
        pytest.param(
            zone(labelSelector={}), constraint(selection=selecting()), id="keeps an empty selector"
        ),
        pytest.param(
            zone(labelSelector=None, matchLabelKeys=["hash"]),
            constraint(selection=None),
            id="matches nothing without a selector",
        ),
    ],
)
def test_a_constraint_of_the_pod(given: dict[str, Any], expected: Constraint) -> None:
    given = {key: value for key, value in given.items() if value is not None}
    assert found(spreading(given, app="web", hash="1")) == [expected]


def test_constraints_are_told_apart_by_what_they_do() -> None:
    pod = spreading(zone(), zone(topologyKey="rack", whenUnsatisfiable=SCHEDULE_ANYWAY))
    assert found(pod) == [constraint()]
    assert found(pod, SCHEDULE_ANYWAY) == [constraint(topology_key="rack")]


# Defaults.


def owned(kind: str, name: str, api_version: str = "apps/v1", **labels: str) -> Pod:
    owner = {"kind": kind, "name": name, "apiVersion": api_version, "controller": True}
    other = {"kind": "ReplicaSet", "name": "not-me", "apiVersion": "apps/v1"}
    meta = {
        "name": "pod",
        "namespace": "default",
        "labels": {"app": "web", "hash": "1", **labels},
        "ownerReferences": [other, owner],
    }
    return msgspec.convert({"metadata": meta}, Pod)


def named(kind: type[Any], name: str, selector: Any, namespace: str = "default") -> Any:
    meta = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": meta, "spec": {"selector": selector}}, kind)


def workloads() -> ClusterState:
    state = ClusterState()
    by_labels = {"matchLabels": {"hash": "1"}}
    by_expression = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    for thing in (
        named(Service, "front", {"app": "web"}),
        named(Service, "both", {"app": "web", "tier": "a"}),
        named(Service, "all", {}),
        named(Service, "abroad", {"hash": "1"}, "other"),
        named(ReplicationController, "rc", {"hash": "1"}),
        named(ReplicaSet, "rs", by_labels),
        named(ReplicaSet, "not-me", {"matchLabels": {"app": "wrong"}}),
        named(ReplicaSet, "blank", {}),
        named(StatefulSet, "sts", by_expression),
        msgspec.convert({"metadata": {"name": "none", "namespace": "default"}}, StatefulSet),
    ):
        state.put_object(thing)
    return state


APP, HASH = equal(app="web"), equal(hash="1")


@pytest.mark.parametrize(
    ("pod", "requirements"),
    [
        pytest.param(
            make_pod(labels={"x": "y"}), [], id="has no selector without Service and owner"
        ),
        pytest.param(
            make_pod(labels={"app": "web"}), APP, id="uses a Service that selects the pod"
        ),
        pytest.param(
            make_pod(labels={"app": "web", "tier": "a"}),
            equal(app="web", tier="a"),
            id="merges several Services",
        ),
        pytest.param(
            make_pod(namespace="other", labels={"app": "web", "hash": "1"}),
            HASH,
            id="uses only Services of the pod's namespace",
        ),
        pytest.param(
            owned("ReplicaSet", "rs"), [*APP, *HASH], id="adds the selector of a ReplicaSet"
        ),
        pytest.param(
            owned("StatefulSet", "sts"),
            [*APP, LabelRequirement("app", "Exists")],
            id="adds the expressions of a StatefulSet",
        ),
        pytest.param(
            owned("ReplicationController", "rc", "v1"),
            [*APP, *HASH],
            id="adds the selector of a ReplicationController",
        ),
        pytest.param(
            owned("ReplicaSet", "gone"), APP, id="ignores a ReplicaSet that does not exist"
        ),
        pytest.param(
            owned("ReplicationController", "gone", "v1"),
            APP,
            id="ignores a ReplicationController that does not exist",
        ),
        pytest.param(
            owned("StatefulSet", "none"), APP, id="ignores a controller without a selector"
        ),
        pytest.param(owned("ReplicaSet", "blank"), APP, id="adds nothing for an empty selector"),
        pytest.param(
            owned("ReplicaSet", "rs", "apps/v1beta1"),
            APP,
            id="ignores an owner of another API version",
        ),
        pytest.param(owned("Job", "rs", "batch/v1"), APP, id="ignores an owner of another kind"),
    ],
)
def test_the_selector_of_defaults(pod: Pod, requirements: list[LabelRequirement]) -> None:
    constraints = found(pod, SCHEDULE_ANYWAY, state=workloads())
    known = {"selection": selecting(*requirements, namespace=pod.namespace)}
    system = [
        constraint(topology_key=HOSTNAME, max_skew=3, **known),
        constraint(topology_key=ZONE, max_skew=5, **known),
    ]
    assert constraints == (system if requirements else [])
    assert found(pod, state=workloads()) == []


def test_a_pod_with_a_constraint_has_no_defaults() -> None:
    assert found(spreading(zone(), app="web"), SCHEDULE_ANYWAY, state=workloads()) == []


def test_a_service_that_goes_counts_no_more() -> None:
    state, pod = workloads(), make_pod(labels={"app": "web"})
    state.remove_object(named(Service, "front", {}))
    assert found(pod, SCHEDULE_ANYWAY, state=state) == []


def test_defaults_from_the_configuration() -> None:
    args = args_from(
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": DO_NOT_SCHEDULE},
                {
                    "maxSkew": 4,
                    "topologyKey": "rack",
                    "whenUnsatisfiable": SCHEDULE_ANYWAY,
                    "nodeTaintsPolicy": "Honor",
                },
            ],
        }
    )
    pod, state = make_pod(labels={"app": "web"}), workloads()
    assert found(pod, args=args, state=state) == [constraint()]
    assert found(pod, SCHEDULE_ANYWAY, args=args, state=state) == [
        constraint(topology_key="rack", max_skew=4, honors_taints=True)
    ]


def test_an_empty_list_turns_defaults_off() -> None:
    args = args_from({"defaultingType": "List"})
    pod = make_pod(labels={"app": "web"})
    assert found(pod, SCHEDULE_ANYWAY, args=args, state=workloads()) == []


# Args that are wrong.


def args_from(args: dict[str, Any]) -> PodTopologySpreadArgs:
    return msgspec.convert(args, PodTopologySpreadArgs)


def soft(key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": SCHEDULE_ANYWAY, **more}


@pytest.mark.parametrize(
    ("constraints", "problems"),
    [
        pytest.param([soft(), soft("rack")], [], id="accepts a valid list"),
        pytest.param(
            [soft(), soft(maxSkew=0, topologyKey="rack")],
            ["[1].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="requires a maxSkew above 0",
        ),
        pytest.param(
            [{"maxSkew": 1}],
            [
                "[0].topologyKey: Required value: can not be empty",
                "[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="requires topologyKey and whenUnsatisfiable",
        ),
        pytest.param(
            [soft(whenUnsatisfiable="Maybe")],
            [
                '[0].whenUnsatisfiable: Unsupported value: "Maybe": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"'
            ],
            id="requires a known whenUnsatisfiable",
        ),
        pytest.param(
            [soft(labelSelector={})],
            [
                "[0].labelSelector: Forbidden: constraint must not define a selector, "
                "as they deduced for each pod"
            ],
            id="rejects a labelSelector",
        ),
        pytest.param(
            [soft(), soft(whenUnsatisfiable=DO_NOT_SCHEDULE), soft(maxSkew=2)],
            ['[2]: Duplicate value: "{zone, ScheduleAnyway}"'],
            id="rejects the same key and action twice",
        ),
    ],
)
def test_what_is_wrong_with_a_list(constraints: list[Any], problems: list[str]) -> None:
    args = args_from({"defaultingType": "List", "defaultConstraints": constraints})
    assert list(args.problems()) == [("defaultConstraints", text) for text in problems]


def test_built_in_defaults_go_with_no_list() -> None:
    args = args_from({"defaultConstraints": [soft()]})
    text = 'Invalid value: "System": when .defaultConstraints are not empty'
    assert list(args.problems()) == [("defaultingType", text)]


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: PodTopologySpread
        args:
          defaultingType: Sometimes
          defaultConstraints:
            - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, min: 2}
"""


def test_what_is_wrong_is_told_with_its_place() -> None:
    with pytest.raises(ConfigError) as rejected:
        Registry(BUILT_IN).build(load_config(CONFIG, file="c.yaml"), {Binder: NoBinder()})
    path = "profiles[0].pluginConfig[0].args"
    kind, field = rejected.value.problems
    assert kind.startswith("c.yaml:7")
    assert f'{path}.defaultingType: is the string "Sometimes"' in kind
    assert field.startswith("c.yaml:9")
    assert f"{path}.defaultConstraints[0].min: is not a known field" in field
