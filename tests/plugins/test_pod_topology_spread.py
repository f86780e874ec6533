"""PodTopologySpread: where a pod would stand too close to its like, and where it stands best."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import Rejection
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import Service
from lowtide.plugins.pod_topology_spread import PodTopologySpread
from lowtide.plugins.pod_topology_spread_constraints import PodTopologySpreadArgs
from lowtide.scheduler.decide import decide
from lowtide.testing import (
    make_node,
    make_pod,
    make_profile,
    make_reading,
    make_state,
    rejections,
    scores,
)

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
GPU = {"key": "gpu", "effect": "NoSchedule"}
SERVICE = msgspec.convert(
    {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}},
    Service,
)


def plugin(**args: Any) -> PodTopologySpread:
    return PodTopologySpread(msgspec.convert(args, PodTopologySpreadArgs))


def node(name: str, zone: str | None, **more: Any) -> Node:
    labels = {**({} if zone is None else {"zone": zone}), **more.pop("labels", {})}
    return make_node(name, labels=labels, **more)


def web(name: str = "web", on: str = "", *constraints: dict[str, Any], **more: Any) -> Pod:
    labels = {"app": "web", **more.pop("labels", {})}
    spec = {**more.pop("spec", {}), "topologySpreadConstraints": list(constraints)}
    return make_pod(name, on=on, labels=labels, spec=spec, **more)


def hard(key: str = "zone", **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def soft(key: str = "zone", **more: Any) -> dict[str, Any]:
    return hard(key, whenUnsatisfiable="ScheduleAnyway", **more)


def pods_on(counts: Mapping[str, int], **more: Any) -> list[Pod]:
    """So many pods called web on each node."""
    return [
        web(f"web-{name}-{number}", name, **more)
        for name, count in counts.items()
        for number in range(count)
    ]


def two_zones() -> list[Node]:
    return [node("a", "x"), node("b", "x"), node("c", "y"), node("bare", None)]


def rejected(pod: Pod, state: ClusterState) -> dict[str, str]:
    """The reason of each node that is rejected; it has one."""
    return {name: reason for name, (reason,) in rejections(plugin(), pod, state).items()}


def uneven(names: str) -> dict[str, str]:
    return {**dict.fromkeys(names, UNEVEN), "bare": NO_LABEL}


# Filter.


@pytest.mark.parametrize(
    ("constraint", "counts", "names"),
    [
        # y has 0 pods, x would have 1: a skew of 1
        pytest.param(hard(), {}, "", id="accepts all nodes while there are no pods"),
        pytest.param(hard(), {"a": 1}, "ab", id="rejects every node of the fuller zone"),
        pytest.param(hard(), {"a": 1, "c": 1}, "", id="accepts equally full zones"),
        pytest.param(hard(), {"a": 1, "b": 1, "c": 1}, "ab", id="sums the pods of a zone"),
        pytest.param(hard(maxSkew=2), {"a": 1}, "", id="accepts a skew of maxSkew"),
        pytest.param(hard(maxSkew=2), {"a": 2}, "ab", id="rejects a skew above maxSkew"),
        pytest.param(hard(), {"bare": 5}, "", id="rejects a node without the label"),
        pytest.param(
            hard(labelSelector={"matchLabels": {"app": "db"}}),
            {"a": 3},
            "",
            id="counts only matching pods",
        ),
        # The pod itself does not match: 1 + 0 - 0
        pytest.param(
            hard(labelSelector={"matchLabels": {"app": "web", "old": "yes"}}),
            {"a": 1},
            "",
            id="counts the pod itself only if it matches",
        ),
        pytest.param(
            hard(minDomains=2),
            {"a": 1, "c": 1},
            "",
            id="uses the emptiest domain if minDomains is reached",
        ),
        # The lowest counts as 0: 1 + 1 - 0
        pytest.param(
            hard(minDomains=3),
            {"a": 1, "c": 1},
            "abc",
            id="takes the minimum as 0 below minDomains",
        ),
        pytest.param(hard(labelSelector={}), {"a": 3}, "", id="counts no pod by an empty selector"),
        pytest.param(
            {k: v for k, v in hard().items() if k != "labelSelector"},
            {"a": 3},
            "",
            id="counts no pod without a selector",
        ),
    ],
)
def test_filter(constraint: dict[str, Any], counts: dict[str, int], names: str) -> None:
    state = make_state(two_zones(), pods_on(counts))
    assert rejected(web("web", "", constraint), state) == uneven(names)


BY_REVISION = hard(matchLabelKeys=["hash"])


@pytest.mark.parametrize(
    ("constraint", "running", "names"),
    [
        pytest.param(
            hard(),
            pods_on({"a": 1}, namespace="other"),
            "",
            id="counts only pods of its own namespace",
        ),
        pytest.param(hard(), pods_on({"a": 1}, deleted=True), "", id="counts no terminating pod"),
        pytest.param(
            BY_REVISION,
            pods_on({"a": 1}, labels={"hash": "1"}),
            "ab",
            id="counts pods of its own revision with matchLabelKeys",
        ),
        pytest.param(
            BY_REVISION,
            pods_on({"a": 1}, labels={"hash": "2"}),
            "",
            id="counts no pod of another revision with matchLabelKeys",
        ),
    ],
)
def test_which_pods_are_counted(
    constraint: dict[str, Any], running: Sequence[Pod], names: str
) -> None:
    pod = web("web", "", constraint, labels={"hash": "1"})
    assert rejected(pod, make_state(two_zones(), running)) == uneven(names)


@pytest.mark.parametrize(
    ("policies", "names"),
    [
        # Only x is counted and holds the lowest: 1 + 1 - 1
        pytest.param({}, "", id="counts only nodes that the pod's affinity allows"),
        # y is counted with 0: 1 + 1 - 0
        pytest.param(
            {"nodeAffinityPolicy": "Ignore"},
            "ab",
            id="counts all nodes with nodeAffinityPolicy Ignore",
        ),
    ],
)
def test_affinity_policy(policies: dict[str, str], names: str) -> None:
    pod = web("web", "", hard(**policies), node_selector={"zone": "x"})
    assert rejected(pod, make_state(two_zones(), pods_on({"a": 1}))) == uneven(names)


@pytest.mark.parametrize(
    ("policies", "tolerations", "names"),
    [
        pytest.param({}, [], "ab", id="counts tainted nodes by default"),
        pytest.param(
            {"nodeTaintsPolicy": "Honor"},
            [],
            "",
            id="ignores tainted nodes with nodeTaintsPolicy Honor",
        ),
        pytest.param(
            {"nodeTaintsPolicy": "Honor"},
            [{"key": "gpu", "operator": "Exists"}],
            "ab",
            id="counts nodes whose taints the pod tolerates",
        ),
    ],
)
def test_taints_policy(
    policies: dict[str, str], tolerations: list[dict[str, str]], names: str
) -> None:
    nodes = [node("a", "x"), node("b", "x"), node("c", "y", taints=[GPU]), node("bare", None)]
    pod = web("web", "", hard(**policies), tolerations=tolerations)
    assert rejected(pod, make_state(nodes, pods_on({"a": 1}))) == uneven(names)


def test_several_constraints() -> None:
    nodes = [node("a", "x"), node("b", "x"), node("c", "y"), node("d", "y", labels={"rack": "1"})]
    state = make_state(nodes, pods_on({"a": 1, "b": 2, "c": 3}))
    # Only d has both keys: y holds 0, and so does rack 1.
    pod = web("web", "", hard("rack"), hard())
    assert rejected(pod, state) == dict.fromkeys("abc", NO_LABEL)
    # Hosts: d is the emptiest with 0; zones: x 3 and y 3.
    pod = web("web", "", hard(HOSTNAME, maxSkew=2), hard())
    assert rejected(pod, state) == {"b": UNEVEN, "c": UNEVEN}


def test_the_first_constraint_that_a_node_does_not_meet_is_the_reason() -> None:
    rack = {"rack": "1"}
    nodes = [node("a", "x"), node("b", "x", labels=rack), node("c", "y", labels=rack)]
    state = make_state(nodes, pods_on({"b": 1}))
    wide = hard("rack", maxSkew=9)
    assert rejected(web("web", "", hard(), wide), state) == {"a": UNEVEN, "b": UNEVEN}
    assert rejected(web("web", "", wide, hard()), state) == {"a": NO_LABEL, "b": UNEVEN}


def test_what_is_rejected_for_a_label_no_eviction_helps() -> None:
    nodes = make_state(two_zones(), pods_on({"a": 1})).nodes()
    found = list(plugin().filter(web("web", "", hard()), nodes))
    assert [(each.mask.tolist(), each.reason, each.eviction_helps) for each in found] == [
        ([False, False, False, True], NO_LABEL, False),
        ([True, True, False, False], UNEVEN, True),
    ]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(web(), id="accepts all nodes without constraints"),
        pytest.param(
            web("web", "", soft()), id="accepts all nodes with ScheduleAnyway constraints"
        ),
    ],
)
def test_nothing_is_rejected(pod: Pod) -> None:
    assert list(plugin().filter(pod, make_state(two_zones(), pods_on({"a": 9})).nodes())) == []


def test_a_cluster_without_nodes() -> None:
    nodes = make_state([]).nodes()
    assert [each.mask.tolist() for each in plugin().filter(web("w", "", hard()), nodes)] == [[], []]
    raw = plugin().score(web("w", "", soft()), nodes.with_feasible(np.zeros(0, np.bool_)))
    assert raw is not None
    assert raw.tolist() == []


# In thought.


def rejected_on(pod: Pod, nodes: Nodes) -> set[str]:
    found: list[Rejection] = list(plugin().filter(pod, nodes))
    return {nodes.names[at] for each in found for at in np.flatnonzero(each.mask)}


def three_zones() -> list[Node]:
    return [node("a", "x"), node("b", "y"), node("c", "z"), node("d", "z")]


@pytest.mark.parametrize(
    ("counts", "at", "expected"),
    [
        # x 1+1 against y 0
        pytest.param({}, [0], {"a"}, id="counts an added pod on its own node"),
        # Each node alone: on c only z has one, on d likewise.
        pytest.param({}, [2, 3], {"c", "d"}, id="judges each node with only its own added pods"),
        # x 2, y 2, z 1 before; c: z 2+1 against 2
        pytest.param({"a": 2, "b": 2, "c": 1}, [2], {"a", "b"}, id="raises the minimum too"),
        # x 1, y 1, z 1; a: x 2+1 against 1
        pytest.param(
            {"a": 1, "b": 1, "c": 1}, [0], {"a"}, id="keeps the minimum of the other zones"
        ),
    ],
)
def test_pods_that_are_added_in_thought(
    counts: dict[str, int], at: list[int], expected: set[str]
) -> None:
    nodes = make_state(three_zones(), pods_on(counts)).nodes()
    thought = nodes.with_pods({each: [web(f"new-{each}")] for each in at})
    assert rejected_on(web("web", "", hard()), thought) == expected
    positions = np.array(at, np.intp)
    of_some = {nodes.names[each] for each in at} & expected
    assert rejected_on(web("web", "", hard()), thought.take(positions)) == of_some


@pytest.mark.parametrize(
    ("counts", "gone", "expected"),
    [
        # x 2 -> 1; y 0: 1 + 1 - 0
        pytest.param({"a": 2}, {0: ["web-a-0"]}, {"a"}, id="counts the remaining pods"),
        pytest.param({"a": 2}, {0: ["web-a-0", "web-a-1"]}, set(), id="accepts an emptied zone"),
        # x 1 -> 0 is the lowest now: 0 + 1 - 0; the others as they were: 1 + 1 - 1
        pytest.param(
            {"a": 1, "b": 1, "c": 1},
            {0: ["web-a-0"]},
            set(),
            id="lowers the minimum for that node only",
        ),
        pytest.param(
            {"a": 2, "b": 2, "c": 1, "d": 1},
            {2: ["web-c-0"]},
            set(),
            id="does not change other nodes",
        ),
    ],
)
def test_pods_that_are_removed_in_thought(
    counts: dict[str, int], gone: dict[int, list[str]], expected: set[str]
) -> None:
    nodes = make_state(three_zones(), pods_on(counts)).nodes()
    thought = nodes.without({at: [f"default/{uid}" for uid in uids] for at, uids in gone.items()})
    assert rejected_on(web("web", "", hard()), thought) == expected


def test_in_thought_terminating_pods_and_empty_selectors_count() -> None:
    """As in kube-scheduler, which does not look twice there."""
    nodes = make_state(three_zones(), pods_on({"a": 1}, deleted=True)).nodes()
    # y 1 more than x, which falls to -1: 0 - 1 + 1 - (-1)
    thought = nodes.without({0: ["default/web-a-0"]})
    assert rejected_on(web("web", "", hard()), thought) == set()
    blank = web("web", "", hard(labelSelector={}))
    assert rejected_on(blank, nodes.with_pods({0: [web("new")]})) == {"a"}
    none = web("web", "", {k: v for k, v in hard().items() if k != "labelSelector"})
    assert rejected_on(none, nodes.with_pods({0: [web("new"), web("newer")]})) == set()


def test_in_thought_too_few_domains_count_as_empty() -> None:
    nodes = make_state(three_zones(), pods_on({"a": 1, "b": 1, "c": 1})).nodes()
    pod = web("web", "", hard(minDomains=4, maxSkew=2))
    assert rejected_on(pod, nodes) == set()
    assert rejected_on(pod, nodes.with_pods({1: [web("new")]})) == {"b"}  # 1 + 1 + 1 - 0


def test_nodes_that_are_not_counted_count_nothing_in_thought() -> None:
    pod = web("web", "", hard(), node_selector={"zone": "x"})
    nodes = make_state(three_zones(), pods_on({"a": 1})).nodes()
    assert rejected_on(pod, nodes.with_pods({1: [web("new"), web("newer")]})) == set()


def test_nominated_pods_count_on_their_node() -> None:
    state = make_state(three_zones())
    state.nominate(web("rival", priority=5), "a")
    profile = make_profile([plugin()])
    pod = web("web", "", hard())
    decision = decide(pod, VerdictCache(profile, state), turn=0, full=True)
    assert {name: each.reasons for name, each in decision.rejections.items()} == {"a": (UNEVEN,)}


def test_kept_verdicts_follow_services() -> None:
    default = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [default]}
    state = make_state(three_zones(), pods_on({"a": 1}))
    verdicts = VerdictCache(make_profile([plugin(**args)]), state)
    assert verdicts.verdict_on(web()).feasible.tolist() == [True, True, True, True]
    state.put_object(SERVICE)
    assert verdicts.verdict_on(web()).feasible.tolist() == [False, True, True, True]
    state.remove_object(SERVICE)
    assert verdicts.verdict_on(web()).feasible.tolist() == [True, True, True, True]


# Score.


def zoned(name: str, zone: str | None, **more: Any) -> Node:
    return make_node(name, labels={} if zone is None else {ZONE: zone}, **more)


def served(nodes: Sequence[Node], counts: Mapping[str, int]) -> ClusterState:
    """A Service selects the pods, so that they have default constraints."""
    state = make_state(nodes, pods_on(counts))
    state.put_object(SERVICE)
    return state


def ranked(pod: Pod, state: ClusterState, **args: Any) -> dict[str, tuple[int, int]]:
    """Raw and normalised score of each feasible node."""
    decision = decide(pod, VerdictCache(make_profile([plugin(**args)]), state), turn=0, full=True)
    return {
        each.node_name: (score.raw, score.normalized)
        for each in decision.best
        for score in each.by_plugin.values()
    }


def test_built_in_defaults() -> None:
    # 3 hosts: ln 5 = 1.6094; 2 zones: ln 4 = 1.3863; zone x holds 2, y 1.
    # a: 2*1.6094 + 2 + 2*1.3863 + 4 = 11.99; b: 0 + 2 + 2.77 + 4 = 8.77; c: 1.61 + 2 + 1.39 + 4
    state = served([zoned("a", "x"), zoned("b", "x"), zoned("c", "y")], {"a": 2, "c": 1})
    assert ranked(web(), state) == {
        "a": (12, 75),  # 100*(12+9-12)//12
        "b": (9, 100),
        "c": (9, 100),
    }


def test_built_in_defaults_where_a_node_has_no_zone() -> None:
    # 2 hosts: ln 4 = 1.3863; no zone counts as one: ln 4. a: 1.39 + 2 + 1.39 + 4; b: 2.77 + 2
    state = served([zoned("a", "x"), zoned("b", None)], {"a": 1, "b": 2})
    assert ranked(web(), state) == {"b": (5, 100), "a": (9, 55)}


def test_built_in_defaults_where_a_node_has_no_label_at_all() -> None:
    bare = msgspec.convert({"metadata": {"name": "bare"}, "status": {"allocatable": {}}}, Node)
    # 2 hosts: ln 4 = 1.3863; 2 zones with "none". a: 1.39 + 2 + 1.39 + 4
    state = served([zoned("a", "x"), bare], {"a": 1, "bare": 1})
    assert ranked(web(), state) == {"bare": (0, 100), "a": (9, 0)}


def test_an_empty_zone_and_no_zone_are_one() -> None:
    # One value of the zone, ln 3 = 1.0986, with 3 pods; 2 hosts: ln 4 = 1.3863
    # a: 1.39 + 2 + 3.30 + 4; b has no zone to add: 2.77 + 2
    state = served([zoned("a", ""), zoned("b", None)], {"a": 1, "b": 2})
    assert ranked(web(), state) == {"b": (5, 100), "a": (11, 45)}


def test_defaults_from_the_configuration_pass_over_nodes_without_the_label() -> None:
    state = served([zoned("a", "x"), zoned("b", None), zoned("c", "y")], {"a": 1})
    default = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    # 2 zones: 1*ln 4 = 1.39
    assert ranked(web(), state, defaultingType="List", defaultConstraints=[default]) == {
        "a": (1, 0),  # 100*(1+0-1)//1
        "b": (0, 0),
        "c": (0, 100),
    }


@pytest.mark.parametrize(
    ("constraint", "counts", "expected"),
    [
        pytest.param(
            soft(), {}, {"a": 0, "b": 0, "c": 0, "bare": 0}, id="costs nothing without pods"
        ),
        # 2 zones: 3*ln 4 = 4.16, 1*ln 4 = 1.39
        pytest.param(
            soft(),
            {"a": 1, "b": 2, "c": 1, "bare": 7},
            {"a": 4, "b": 4, "c": 1},
            id="sums the pods of a zone, weighted by the number of zones",
        ),
        pytest.param(
            soft(maxSkew=4), {"a": 1}, {"a": 4, "b": 4, "c": 3}, id="adds maxSkew minus 1"
        ),
        # 4 hosts: ln 6 = 1.79
        pytest.param(
            soft(HOSTNAME), {"a": 1, "c": 3}, {"a": 2, "c": 5}, id="counts each host on its own"
        ),
        pytest.param(soft(labelSelector={}), {"a": 9}, {}, id="counts no pod by an empty selector"),
    ],
)
def test_score(constraint: dict[str, Any], counts: dict[str, int], expected: Any) -> None:
    state = make_state(two_zones(), pods_on(counts))
    wanted = {**dict.fromkeys(["a", "b", "c", "bare"], 0), **expected}
    assert scores(plugin(), web("web", "", constraint), state) == wanted


def test_only_feasible_nodes_make_domains() -> None:
    # d is full: its zone is no domain, and its host is none.
    nodes = [node("a", "x"), node("b", "y"), node("d", "z")]
    state = make_state(nodes, pods_on({"a": 4, "d": 1}))
    pod = web("web", "", soft())
    feasible = state.nodes().with_feasible(np.array([True, True, False]))
    raw = plugin().score(pod, feasible)
    assert raw is not None
    assert raw.tolist()[:2] == [6, 0]  # 2 zones: 4*ln 4 = 5.5
    raw = plugin().score(web("web", "", soft(HOSTNAME)), feasible)
    assert raw is not None
    assert raw.tolist()[:2] == [6, 0]  # 2 hosts, likewise


class Hot:
    """Rejects nodes by what is measured on them."""

    name = "Hot"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield Rejection(nodes.reading("heat")["heat"] > 0, "hot")


def test_a_node_that_is_rejected_by_a_new_reading_no_longer_makes_a_domain() -> None:
    nodes = [node("a", "x"), node("b", "y"), node("c", "z")]
    state = make_state(nodes, pods_on({"a": 3, "b": 1}))
    verdicts, pod = VerdictCache(make_profile([Hot(), plugin()]), state), web("web", "", soft())
    raw = []
    for heat in (0.0, 1.0):
        state.publish("heat", make_reading({"c": {"heat": heat}}, {"heat": 0.0}))
        (found,) = decide(pod, verdicts, turn=0).scores.raw
        raw.append(found.tolist())
    # Best first. 3 zones: 0, ln 5 = 1.6, 3*ln 5 = 4.8; 2 zones: ln 4 = 1.4, 3*ln 4 = 4.2
    assert raw == [[0, 2, 5], [1, 4]]


def test_a_node_that_lacks_one_of_the_labels_is_passed_over() -> None:
    nodes = [node("a", "x"), node("b", "x", labels={"rack": "1"})]
    state = make_state(nodes, pods_on({"a": 2, "b": 1}))
    # Only b's pods count: 1 zone, 1 rack: ln 3 = 1.0986 each
    assert ranked(web("web", "", soft(), soft("rack")), state) == {"b": (2, 100), "a": (0, 0)}


def test_nodes_that_are_not_feasible_do_not_count_when_normalizing() -> None:
    state = make_state([node("a", "x"), node("b", "y"), node("d", "z")], pods_on({"a": 2, "d": 9}))
    spread, feasible = plugin(), np.array([True, True, False])
    pod, nodes = web("web", "", soft()), state.nodes().with_feasible(feasible)
    raw = spread.score(pod, nodes)
    assert raw is not None
    assert spread.normalize(pod, nodes, raw).tolist()[:2] == [0, 100]  # raw 3 and 0


def test_hosts_are_counted_whatever_the_policies() -> None:
    pod = web("web", "", soft(HOSTNAME), soft(), node_selector={"zone": "x"})
    state = make_state([node("a", "x"), node("c", "y")], pods_on({"c": 2}))
    # 2 hosts: 2*ln 4 = 2.77; zone y is not counted
    assert scores(plugin(), pod, state) == {"a": 0, "c": 3}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(web(), id="has no opinion without constraints, Service and owner"),
        pytest.param(
            web("web", "", hard()), id="has no opinion with DoNotSchedule constraints alone"
        ),
    ],
)
def test_no_opinion(pod: Pod) -> None:
    assert scores(plugin(), pod, make_state(two_zones())) is None


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param({}, {"a": 100, "b": 100, "c": 100, "bare": 0}, id="scores 100 without pods"),
        # raw 1, 1, 0: 100*(1+0-1)//1
        pytest.param({"a": 1}, {"c": 100, "a": 0, "b": 0, "bare": 0}, id="prefers fewer"),
        # raw 4, 4, 3: 100*(4+3-4)//4
        pytest.param(
            {"a": 3, "c": 2},
            {"c": 100, "a": 75, "b": 75, "bare": 0},
            id="scores relative to the lowest count",
        ),
    ],
)
def test_normalized(counts: dict[str, int], expected: dict[str, int]) -> None:
    found = ranked(web("web", "", soft()), make_state(two_zones(), pods_on(counts)))
    assert {name: normalized for name, (_, normalized) in found.items()} == expected


@pytest.mark.parametrize("max_skew", [0, -1])
def test_a_skew_that_the_api_server_would_reject_counts_as_the_least_that_it_allows(
    max_skew: int,
) -> None:
    state = make_state([node(name, name) for name in "abc"], pods_on({"b": 1, "c": 2}))
    # 1.61 and 3.22 pods weighted by three domains; (3 + 0 - raw) * 100 // 3
    assert ranked(web("web", "", soft(maxSkew=max_skew)), state) == {
        "a": (0, 100),
        "b": (2, 33),
        "c": (3, 0),
    }
