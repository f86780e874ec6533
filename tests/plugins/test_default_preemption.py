"""Whether others are evicted for a pod that fits nowhere, from which node, and what is said."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from lowtide.framework.plugin import Nodes, PodRejection, PostFiltered, Rejection
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod, PodCondition
from lowtide.objects.policy import PodDisruptionBudget
from lowtide.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.taint_toleration import TaintToleration
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state

FIT = NodeResourcesFit(NodeResourcesFitArgs())
NEVER = "preemption: not eligible due to preemptionPolicy=Never."
TERMINATING = "preemption: not eligible due to a terminating pod on the nominated node."


def preemption(**args: int) -> DefaultPreemption:
    return DefaultPreemption(DefaultPreemptionArgs(**args))


def found(
    pod: Pod,
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    *more_plugins: Any,
    budgets: Sequence[PodDisruptionBudget] = (),
    plugin: DefaultPreemption | None = None,
    turn: int = 0,
    waited_seconds: float = 0.0,
) -> PostFiltered:
    state = make_state(nodes, pods)
    for budget in budgets:
        state.put_object(budget)
    profile = make_profile([TaintToleration(), FIT, *more_plugins, plugin or preemption()])
    decision = decide(pod, VerdictCache(profile, state), turn=turn, waited_seconds=waited_seconds)
    assert decision.post_filtered is not None
    return decision.post_filtered


def small(name: str, **more: Any) -> Node:
    return make_node(name, cpu="1", **more)


def big(**more: Any) -> Pod:
    return make_pod("big", **{"cpu": "1", "priority": 10, **more})


def low(name: str, node_name: str, *, cpu: str = "1", second: int = 0, **more: Any) -> Pod:
    """Pods of a node start one after the other."""
    pod = make_pod(name, on=node_name, cpu=cpu, **more)
    start = f"2026-01-01T00:00:{second:02d}Z"
    return replace(pod, status=replace(pod.status, start_time=start))


def budget(name: str, *, allowed: int, disrupted: Sequence[str] = (), **labels: str) -> Any:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def victims(answer: PostFiltered) -> tuple[str, list[str], int] | None:
    chosen = answer.eviction
    if chosen is None:
        return None
    return chosen.node_name, [pod.name for pod in chosen.victims], chosen.budget_violations


# Whom it evicts.


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([low("a", "n")], ["a"], id="evicts the pod that takes the room"),
        pytest.param(
            [low("a", "n", cpu="500m"), low("b", "n", cpu="500m", second=1)],
            ["a", "b"],
            id="evicts every pod it has to, oldest first",
        ),
        pytest.param(
            [low("vip", "n", cpu="500m", priority=5, second=9), low("a", "n", cpu="500m")],
            ["a"],
            id="spares a pod of higher priority, even if it is younger",
        ),
        pytest.param(
            [low("small", "n", cpu="100m", priority=5), low("large", "n", cpu="900m")],
            ["large"],
            id="spares a pod of higher priority if evicting the others is enough",
        ),
        pytest.param(
            [low("new", "n", cpu="500m", second=9), low("old", "n", cpu="500m", second=1)],
            ["new"],
            id="spares the older of two equal pods",
        ),
        pytest.param(
            [low("equal", "n", cpu="500m", priority=10), low("a", "n", cpu="500m")],
            ["a"],
            id="evicts no pod of the same priority",
        ),
    ],
)
def test_the_plugin(pods: list[Pod], want: list[str]) -> None:
    answer = found(big(cpu="500m" if len(want) == 1 else "1"), [small("n")], pods)
    assert victims(answer) == ("n", want, 0)


def test_a_pod_without_a_start_time_is_the_youngest() -> None:
    pods = [make_pod("assumed", on="n", cpu="500m"), low("running", "n", cpu="500m", second=59)]
    assert victims(found(big(cpu="500m"), [small("n")], pods)) == ("n", ["assumed"], 0)


@pytest.mark.parametrize(
    ("budgets", "want"),
    [
        pytest.param(
            [budget("b", allowed=1, app="db")],
            ("n", ["new"], 0),
            id="the budget allows one disruption",
        ),
        pytest.param(
            [budget("b", allowed=0, app="web")],
            ("n", ["new"], 0),
            id="the budget selects other pods",
        ),
        pytest.param(
            [budget("b", allowed=0, disrupted=["new"], app="db")],
            ("n", ["new"], 0),
            id="the budget already counts the pod as disrupted",
        ),
        pytest.param(
            [budget("b", allowed=0, app="db")],
            ("n", ["old"], 0),
            id="the budget allows no disruption",
        ),
        pytest.param(
            [budget("b", allowed=0, app="db"), budget("c", allowed=0, tier="back")],
            ("n", ["new"], 1),
            id="all pods are protected and one must go",
        ),
        pytest.param(
            [budget("b", allowed=0)], ("n", ["new"], 0), id="the budget has an empty selector"
        ),
    ],
)
def test_a_budget_protects_the_younger_pod_when(budgets: list[Any], want: Any) -> None:
    pods = [
        low("old", "n", cpu="500m", second=1, labels={"tier": "back"}),
        low("new", "n", cpu="500m", second=9, labels={"app": "db"}),
    ]
    assert victims(found(big(cpu="500m"), [small("n")], pods, budgets=budgets)) == want


def test_a_budget_protects_no_pod_of_another_namespace() -> None:
    pods = [
        low("old", "n", cpu="500m", second=1, labels={"app": "db"}, namespace="other"),
        low("new", "n", cpu="500m", second=9, labels={"app": "db"}),
    ]
    db = budget("b", allowed=0, app="db")
    assert victims(found(big(cpu="500m"), [small("n")], pods, budgets=[db])) == ("n", ["old"], 0)


@pytest.mark.parametrize(
    ("operator", "values", "want"),
    [
        pytest.param(
            "NotIn", ["web"], ("n", ["old"], 0), id="NotIn selects a pod without the label"
        ),
        pytest.param(
            "DoesNotExist", [], ("n", ["old"], 0), id="DoesNotExist selects a pod without the label"
        ),
        pytest.param("In", [], ("n", ["new"], 0), id="In without values selects no pod"),
    ],
)
def test_a_budget_with_an_expression(operator: str, values: list[str], want: Any) -> None:
    pods = [
        low("old", "n", cpu="500m", second=1, labels={"app": "web", "pod": "old"}),
        low("new", "n", cpu="500m", second=9, labels={"pod": "new"}),
    ]
    expression = {"key": "app", "operator": operator, "values": values}
    selective = msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [expression]}},
        },
        PodDisruptionBudget,
    )
    assert victims(found(big(cpu="500m"), [small("n")], pods, budgets=[selective])) == want


class CountedLabels(dict[str, str]):
    """Labels of a selector that know how often they were gone through."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return super().items()


def times_matched(node_count: int) -> int:
    """Every pod has a label of its own, as those of a StatefulSet have."""
    names = [f"n{number}" for number in range(node_count)]
    labels = CountedLabels(app="db")
    db = budget("db", allowed=0, app="db")
    selector = replace(db.spec.selector, match_labels=labels)
    found(
        big(),
        [small(n) for n in names],
        [low(f"on-{n}", n, labels={"app": "db", "pod": n}) for n in names],
        budgets=[replace(db, spec=replace(db.spec, selector=selector))],
        plugin=preemption(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1),
    )
    return labels.times


def test_a_budget_is_matched_no_more_often_for_more_pods_of_the_same_kind() -> None:
    assert times_matched(20) == times_matched(1) > 0


# From which node.


@pytest.mark.parametrize(
    ("on_a", "on_b", "want"),
    [
        pytest.param(
            [low("a", "a", labels={"app": "db"})],
            [low("b", "b", priority=9)],
            "b",
            id="no budget is violated, whatever the victims",
        ),
        pytest.param(
            [low("a", "a", priority=2)],
            [low("b", "b", priority=1)],
            "b",
            id="victims have a lower priority",
        ),
        pytest.param(
            [low("a", "a", priority=5)],
            [low("b", "b", cpu="500m", priority=1), low("b2", "b", cpu="500m", second=1)],
            "b",
            id="victims have a lower priority, although they are more",
        ),
        pytest.param(
            [low("a", "a", cpu="500m"), low("a2", "a", cpu="500m", second=1)],
            [low("b", "b")],
            "b",
            id="the sum of priorities is lower",
        ),
        pytest.param(
            [low("a", "a", second=1)], [low("b", "b", second=2)], "b", id="victims started later"
        ),
        pytest.param(
            [low("a", "a")], [make_pod("b", on="b", cpu="1")], "b", id="a victim never started"
        ),
    ],
)
def test_the_node_is_chosen_where(on_a: list[Pod], on_b: list[Pod], want: str) -> None:
    db = budget("db", allowed=0, app="db")
    answer = found(big(), [small("a"), small("b")], [*on_a, *on_b], budgets=[db])
    assert answer.tied_nodes == (want,)
    assert answer.eviction is not None
    assert answer.nominated_node_name == answer.eviction.node_name == want


@pytest.mark.parametrize("turn", range(3))
def test_nodes_that_are_equally_good_take_turns(turn: int) -> None:
    names = ["a", "b", "c"]
    answer = found(
        big(), [small(n) for n in reversed(names)], [low(f"on-{n}", n) for n in names], turn=turn
    )
    assert answer.tied_nodes == ("a", "b", "c")
    assert victims(answer) == (names[turn], [f"on-{names[turn]}"], 0)


def test_the_search_ends_when_enough_candidates_are_found() -> None:
    names = [f"n{number}" for number in range(6)]
    plugin = preemption(min_candidate_nodes_percentage=34, min_candidate_nodes_absolute=1)
    answer = found(
        big(), [small(n) for n in names], [low(f"on-{n}", n) for n in names], plugin=plugin, turn=4
    )
    # 34 % of 6 are 2; the fifth and the sixth have their turn.
    assert [each.node_name for each in answer.candidates] == ["n4", "n5"]


def test_the_search_goes_on_until_a_candidate_breaks_no_budget() -> None:
    names = [f"n{number}" for number in range(5)]
    plugin = preemption(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    pods = [low(f"on-{n}", n, labels={} if n == "n3" else {"app": "db"}) for n in names]
    nodes = [small(n) for n in names]
    answer = found(big(), nodes, pods, plugin=plugin, budgets=[budget("db", allowed=0, app="db")])
    assert [each.node_name for each in answer.candidates] == ["n0", "n1", "n2", "n3"]
    assert victims(answer) == ("n3", ["on-n3"], 0)


def test_each_node_of_a_long_search_is_a_candidate_once() -> None:
    names = [f"n{number}" for number in range(200)]
    pods = [low(f"on-{n}", n, labels={} if n == "n180" else {"app": "db"}) for n in names]
    vips = [low(f"vip-{n}", n, cpu="100m", priority=99) for n in names[:10]]
    nodes = [small(n) for n in names]
    db = budget("db", allowed=0, app="db")
    answer = found(big(), nodes, [*pods, *vips], budgets=[db])
    # 100 are wanted, and the first 10 cannot be had: 10 are missing when the next 100 are tried.
    assert [each.node_name for each in answer.candidates] == names[10:181]
    assert sorted(answer.still_rejected) == sorted(names[:10])
    assert victims(answer) == ("n180", ["on-n180"], 0)


# When it evicts nobody.


def test_it_says_why_no_eviction_helps() -> None:
    nodes = [
        small("tainted", taints=[{"key": "a", "effect": "NoSchedule"}]),
        small("important"),
        small("too-full"),
        make_node("tiny", cpu="100m"),
    ]
    pods = [
        low("equal", "important", priority=10),
        low("vip", "too-full", cpu="600m", priority=99),
        low("a", "too-full", cpu="400m"),
    ]
    answer = found(big(nominated="too-full"), nodes, pods)
    assert answer.reason == (
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )
    assert (answer.eviction, answer.nominated_node_name) == (None, "")
    assert sorted(answer.still_rejected) == ["important", "too-full"]


def being_preempted(reason: str = "PreemptionByScheduler") -> Pod:
    pod = make_pod("leaving", on="n", cpu="500m", deleted=True)
    condition = PodCondition("DisruptionTarget", "True", reason)
    return replace(pod, status=replace(pod.status, conditions=[condition]))


@pytest.mark.parametrize(
    ("pod", "leaving", "want"),
    [
        pytest.param(
            big(spec={"preemptionPolicy": "Never"}), [], NEVER, id="has preemptionPolicy Never"
        ),
        pytest.param(
            big(nominated="n"),
            [being_preempted()],
            TERMINATING,
            id="waits for victims that are terminating",
        ),
    ],
)
def test_nobody_is_evicted_for_a_pod_that(pod: Pod, leaving: list[Pod], want: str) -> None:
    answer = found(
        pod, [small("n"), small("m")], [*leaving, low("a", "n", cpu="500m"), low("b", "m")]
    )
    assert answer == PostFiltered(want)


@pytest.mark.parametrize(
    ("pod", "leaving"),
    [
        pytest.param(big(), being_preempted(), id="has no nominated node"),
        pytest.param(
            big(nominated="gone"),
            being_preempted(),
            id="was nominated to a node that no longer exists",
        ),
        pytest.param(
            big(nominated="n"),
            being_preempted("EvictionByEvictionAPI"),
            id="did not cause the termination",
        ),
        pytest.param(
            big(nominated="n", cpu="900m"),
            replace(being_preempted(), spec=replace(being_preempted().spec, priority=10)),
            id="has no higher priority",
        ),
    ],
)
def test_a_terminating_pod_is_not_waited_for_by_one_that(pod: Pod, leaving: Pod) -> None:
    answer = found(pod, [small("n"), small("m")], [leaving, low("b", "m")])
    assert answer.eviction is not None


def test_a_nominated_node_where_no_eviction_helps_any_more_is_not_waited_for() -> None:
    tainted = small("n", taints=[{"key": "a", "effect": "NoSchedule"}])
    answer = found(big(nominated="n"), [tainted, small("m")], [being_preempted(), low("b", "m")])
    assert victims(answer) == ("m", ["b"], 0)


class Busy:
    """Rejects nodes for their load: at first, or for ever."""

    name = "Busy"

    def __init__(self, *names: str, gives_way_after: float | None) -> None:
        self._names = names
        self._gives_way_after = gives_way_after

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        mask = np.array([name in self._names for name in nodes.names], np.bool_)
        yield Rejection(mask, "busy", gives_way_after=self._gives_way_after)


def test_nobody_is_evicted_while_a_node_is_rejected_for_its_load_alone() -> None:
    busy = Busy("idle", gives_way_after=30.0)
    answer = found(big(), [small("idle"), small("n")], [low("a", "n")], busy)
    assert answer == PostFiltered(
        "preemption: not eligible while a node with room is rejected for its load alone."
    )


def test_a_busy_node_is_made_room_on_only_when_its_load_gives_way() -> None:
    nodes, pods = [small("n"), small("m")], [low("a", "n"), low("b", "m", priority=5)]
    busy = Busy("n", gives_way_after=30.0)
    assert victims(found(big(), nodes, pods, busy)) == ("m", ["b"], 0)
    both = Busy("n", "m", gives_way_after=30.0)
    assert victims(found(big(), nodes, pods, both)) is None
    assert victims(found(big(), nodes, pods, both, waited_seconds=31.0)) == ("n", ["a"], 0)


def test_a_pod_is_tried_again_when_the_load_of_nodes_it_may_preempt_on_has_given_way() -> None:
    profile = make_profile([FIT, Busy("n", gives_way_after=30.0), preemption()])
    verdicts = VerdictCache(profile, make_state([small("n")], [low("a", "n")]))
    decision = decide(big(), verdicts, turn=0, waited_seconds=5.0)
    assert (victims(decision.post_filtered or PostFiltered()), decision.gives_way_after) == (
        None,
        30.0,
    )


class Rejects:
    name = "Rejects"

    def __init__(self, *, eviction_helps: bool) -> None:
        self._eviction_helps = eviction_helps

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection:
        return PodRejection("not this one", self._eviction_helps)


@pytest.mark.parametrize(
    ("eviction_helps", "want"),
    [
        pytest.param(True, ("n", ["a"], 0), id="tries every node if eviction may help"),
        pytest.param(False, None, id="tries no node if eviction cannot help"),
    ],
)
def test_of_a_pod_that_is_rejected_everywhere_the_plugin(eviction_helps: bool, want: Any) -> None:
    answer = found(big(), [small("n")], [low("a", "n")], Rejects(eviction_helps=eviction_helps))
    assert victims(answer) == want


# Args.


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({}, [], id="accepts the defaults"),
        pytest.param(
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                (
                    "minCandidateNodesPercentage",
                    "Invalid value: 101: not in valid range [0, 100]",
                ),
                ("minCandidateNodesAbsolute", "Invalid value: -1: not in valid range [0, inf)"),
            ],
            id="rejects values out of range",
        ),
        pytest.param(
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                (
                    "minCandidateNodesPercentage",
                    "Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesAbsolute",
                ),
                (
                    "minCandidateNodesAbsolute",
                    "Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesPercentage",
                ),
            ],
            id="rejects two zeros",
        ),
    ],
)
def test_args(args: dict[str, int], want: list[tuple[str, str]]) -> None:
    assert list(msgspec.convert(args, DefaultPreemptionArgs).problems()) == want


@pytest.mark.parametrize(
    ("count", "want"),
    [
        pytest.param(7, 7, id="all nodes of a small cluster"),
        pytest.param(400, 100, id="the absolute minimum"),
        pytest.param(5009, 500, id="a percentage of a large cluster"),
    ],
)
def test_of_the_nodes_as_many_are_to_be_found_as(count: int, want: int) -> None:
    assert DefaultPreemptionArgs().candidates_among(count) == want
