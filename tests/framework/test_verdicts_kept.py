"""What is kept of verdicts between pods, and which rows are judged again."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import (
    NODE,
    NODES,
    PODS,
    READING,
    TERMS,
    BoolArray,
    IntArray,
    Nodes,
    PluginError,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdicts import Verdicts
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import bytes_in_memory
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_profile, make_state

POD = make_pod()


class Counts:
    """Accepts all and counts on how many rows it was asked."""

    name = "Counts"

    def __init__(self, reads: int, kinds: tuple[type, ...] = ()) -> None:
        self.reads = reads
        self.kinds = kinds
        self.judged: list[int] = []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        self.judged.append(len(nodes))
        return ()


def ten() -> ClusterState:
    return make_state([make_node(f"n{number}") for number in range(10)])


@pytest.mark.parametrize(
    ("event", "judged_by"),
    [
        pytest.param(
            lambda state: state.update_node(make_node("n3", cpu="9")),
            {"node": [1], "pods": [], "reading": [], "nothing": []},
            id="a node",
        ),
        pytest.param(
            lambda state: state.place(make_pod("p", on="n3")),
            {"node": [], "pods": [1], "reading": [], "nothing": []},
            id="a pod",
        ),
        pytest.param(
            lambda state: state.publish("x", Reading()),
            {"node": [], "pods": [], "reading": [10], "nothing": []},
            id="a reading",
        ),
        pytest.param(
            lambda state: state.add_node(make_node("new")),
            {"node": [1], "pods": [1], "reading": [1], "nothing": [1]},
            id="a new node",
        ),
        pytest.param(
            lambda state: state.remove_node("n3"),
            {"node": [1], "pods": [1], "reading": [1], "nothing": [1]},
            id="a node that goes, by the row that moved",
        ),
        pytest.param(
            lambda state: state.remove_node("n9"),
            {"node": [], "pods": [], "reading": [], "nothing": []},
            id="the last node that goes",
        ),
        pytest.param(
            lambda state: [state.place(make_pod(f"p{n}", on=f"n{n}")) for n in range(6)],
            {"node": [], "pods": [10], "reading": [], "nothing": []},
            id="more than half of the rows, by all rows",
        ),
    ],
)
def test_a_row_is_judged_again_by_rules_that_read(
    event: Callable[[ClusterState], Any], judged_by: dict[str, list[int]]
) -> None:
    reads = {"node": NODE, "pods": PODS, "reading": READING, "nothing": 0}
    rules = {key: Counts(read) for key, read in reads.items()}
    state = ten()
    verdicts = Verdicts(make_profile(list(rules.values())), state)
    verdicts.of(POD)
    event(state)
    verdicts.of(POD)
    verdicts.of(POD)
    assert {key: rule.judged[1:] for key, rule in rules.items()} == judged_by


def test_pods_of_one_shape_share_a_verdict() -> None:
    rule = Counts(NODE)
    verdicts = Verdicts(make_profile([rule]), ten())
    assert verdicts.of(make_pod("p")) is verdicts.of(make_pod("q"))
    assert verdicts.of(make_pod("p")) is not verdicts.of(make_pod("p", cpu="1"))
    assert rule.judged == [10, 10]


def test_an_object_makes_every_row_stale_for_rules_of_its_kind() -> None:
    concerned, other = Counts(NODE, kinds=(Namespace,)), Counts(NODE)
    verdicts = Verdicts(make_profile([concerned, other]), ten())
    verdicts.of(POD)
    verdicts.object_changed(Namespace)
    verdicts.of(POD)
    assert (concerned.judged, other.judged) == ([10, 10], [10])


def asked_twice(verdicts: Verdicts, pod: Pod) -> Verdict:
    """About two pods, so that it is kept: a shape that was seen once may never come again."""
    verdicts.of(pod)
    return verdicts.of(msgspec.structs.replace(pod, metadata=renamed(pod.metadata)))


def renamed(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(meta, name="another", uid="another")


def test_of_shapes_that_were_asked_about_once_only_the_last_is_kept() -> None:
    rule = Counts(NODE)
    verdicts = Verdicts(make_profile([rule]), ten())
    pods = [make_pod(labels={"shape": str(number)}) for number in range(3)]
    former = weakref.ref(verdicts.of(pods[0]))
    verdicts.of(pods[0])  # as an extender is asked twice about a pod: that is one time
    asked_twice(verdicts, pods[1])  # while it is the last one: is not judged again, and kept
    assert former() is None
    verdicts.of(pods[2])
    verdicts.of(pods[1])
    assert rule.judged == [10, 10, 10]
    verdicts.of(pods[0])  # was seen: is judged again, and kept
    verdicts.of(pods[2])  # likewise
    assert rule.judged == [10, 10, 10, 10, 10]
    for pod in pods:
        verdicts.of(pod)
    assert rule.judged == [10, 10, 10, 10, 10]


def test_of_very_many_shapes_that_were_seen_the_first_are_forgotten() -> None:
    rule = Counts(NODE)
    verdicts = Verdicts(make_profile([rule]), ten())
    pods = [make_pod(labels={"shape": str(number)}) for number in range(1025)]
    for pod in (*pods, pods[0], pods[-1], pods[0], pods[-1]):
        verdicts.of(pod)
    # The first is new again, and then known; the last was known all along.
    assert len(rule.judged) == 1025 + 3


def test_a_shape_that_was_asked_about_once_hears_of_objects_too() -> None:
    rule = Counts(NODE, kinds=(Namespace,))
    verdicts = Verdicts(make_profile([rule]), ten())
    verdicts.of(POD)
    verdicts.object_changed(Namespace)
    verdicts.of(POD)
    assert rule.judged == [10, 10]


def test_the_oldest_verdict_is_dropped_when_there_are_too_many_bytes() -> None:
    rule = Counts(NODE)
    pods = [make_pod(labels={"shape": str(number)}) for number in range(3)]
    roomy = Verdicts(make_profile([rule]), ten()).of(POD)
    room_for_one = roomy.bytes_when_full + 1.2 * bytes_in_memory(pods[0])
    verdicts = Verdicts(make_profile([rule]), ten(), max_bytes=int(2 * room_for_one))
    rule.judged.clear()
    first = asked_twice(verdicts, pods[0])
    asked_twice(verdicts, pods[1])
    assert verdicts.of(pods[0]) is first  # now the second is the oldest
    asked_twice(verdicts, pods[2])
    assert verdicts.of(pods[0]) is first
    assert rule.judged == [10, 10, 10]
    verdicts.of(pods[1])
    assert rule.judged == [10, 10, 10, 10]


def test_large_pods_leave_room_for_fewer_verdicts() -> None:
    rule = Counts(NODE)
    verdicts = Verdicts(make_profile([rule]), ten(), max_bytes=1_000_000)
    pods = [make_pod(labels={str(number): "x" * 150_000}) for number in range(2)]
    for pod in (*pods, *pods):
        asked_twice(verdicts, pod)
    assert rule.judged == [10, 10, 10, 10]


def test_a_verdict_that_would_be_judged_anew_all_over_is_not_kept() -> None:
    """So that the shapes of pods which no longer come take no memory."""
    state = ten()
    verdicts = Verdicts(make_profile([Counts(NODE)]), state)
    former = weakref.ref(asked_twice(verdicts, make_pod(labels={"app": "former"})))
    judged_at = state.log.position
    is_known_all_along = []
    for number in range(10_000):
        if state.log.since(judged_at) is None:
            break
        verdicts.of(POD)
        is_known_all_along.append(former() is not None)
        state.update_node(make_node("n3", cpu=str(1 + number % 2)))
    present = verdicts.of(POD)
    assert all(is_known_all_along)
    assert former() is None
    assert verdicts.of(POD) is present


def test_one_verdict_is_kept_however_small_the_bound() -> None:
    verdicts = Verdicts(make_profile([Counts(NODE)]), ten(), max_bytes=0)
    assert verdicts.of(POD) is verdicts.of(POD)


def test_a_verdict_that_could_not_be_given_takes_the_place_of_others_too() -> None:
    class FailsWithLabels:
        name = "FailsWithLabels"
        reads = NODE

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            if pod.labels:
                raise KeyError("a label")
            return ()

    verdicts = Verdicts(make_profile([FailsWithLabels()]), ten(), max_bytes=0)
    former = weakref.ref(asked_twice(verdicts, POD))
    for _ in range(2):
        with pytest.raises(PluginError):
            verdicts.of(make_pod(labels={"app": "web"}))
    assert former() is None


# Kept equals rebuilt: sequences that once broke it.


class Raw:
    """Scores by a table that a test may change; None has no opinion; an exception is raised."""

    scale: str | None = None

    def __init__(self, name: str, reads: int = NODE, scale: str | None = None) -> None:
        self.name = name
        self.reads = reads
        self.scale = scale

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray | None:
        labels = [nodes.node(at).labels for at in range(len(nodes))]
        if any(self.name + "-fails" in each for each in labels):
            raise KeyError(self.name)
        if any(self.name + "-silent" in each for each in labels):
            return None
        return np.array([int(each.get(self.name, "0")) for each in labels], np.int64)


def ranks(verdicts: Verdicts) -> list[int]:
    return [int(rank) for rank in verdicts.of(POD).rank()]


def rebuilt_ranks(profile: Profile, state: ClusterState) -> list[int]:
    fresh = make_state([state.node_at(row) for row in range(state.count)])
    return ranks(Verdicts(profile, fresh))


@pytest.mark.parametrize("scale", [None, "highest_best", "lowest_best"])
def test_rows_that_went_before_anybody_scored_them_are_forgotten(scale: str | None) -> None:
    profile = make_profile([NodeUnschedulable(), Raw("a", scale=scale)])
    nodes = [make_node(f"n{number}", labels={"a": str(number)}) for number in range(10)]
    state = make_state(nodes)
    verdicts = Verdicts(profile, state)
    ranks(verdicts)
    for number in range(3):
        state.add_node(make_node(f"x{number}", labels={"a": "90"}))
    verdicts.of(POD)  # filters only: nobody ranks
    for number in range(3):
        state.remove_node(f"x{number}")
    state.update_node(make_node("n3", labels={"a": "1"}))
    assert ranks(verdicts) == rebuilt_ranks(profile, state)


def test_the_highest_score_goes_with_the_last_row() -> None:
    profile = make_profile([Raw("a", scale="highest_best")])
    state = make_state([make_node(f"n{each}", labels={"a": each}) for each in ("10", "50", "100")])
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [10, 50, 100]
    state.remove_node("n100")
    assert ranks(verdicts) == [20, 100]


def test_a_rule_that_loses_its_opinion_takes_its_points_along() -> None:
    profile = make_profile([Raw("a", reads=NODES), Raw("b")])
    state = make_state([make_node("n0", labels={"a": "90"}), make_node("n1", labels={"a": "5"})])
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [90, 5]
    state.update_node(make_node("n0", labels={"a": "90", "a-silent": ""}))
    assert ranks(verdicts) == [0, 0]
    state.update_node(make_node("n0", labels={"a": "80"}))
    assert ranks(verdicts) == [80, 5]


@pytest.mark.parametrize("scale", [None, "highest_best", "lowest_best"])
@pytest.mark.parametrize("beyond", ["300", "-300", str(2**40)])
def test_what_was_beyond_counting_while_a_node_was_refused_leaves_nothing_behind(
    beyond: str, scale: str | None
) -> None:
    profile = make_profile([Raw("a", scale=scale), Raw("b"), NodeUnschedulable()])
    others = [make_node(f"n{each}", labels={"a": "40", "b": "7"}) for each in (1, 2)]
    refused = make_node("n0", labels={"a": beyond, "b": beyond}, unschedulable=True)
    verdicts = Verdicts(profile, make_state([refused, *others]))
    ranks(verdicts)
    mended = make_node("n0", labels={"a": "20", "b": "3"})
    verdicts.state.update_node(mended)
    afresh = Verdicts(profile, make_state([mended, *others]))
    assert ranks(verdicts) == ranks(afresh)


def test_the_only_node_loses_the_points_of_a_rule_that_loses_its_opinion() -> None:
    profile = make_profile([Raw("a", reads=NODES), Raw("b")])
    state = make_state([make_node("n0", labels={"a": "90"})])
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [90]
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [0]


def test_a_row_that_went_keeps_no_points_of_a_rule_that_lost_its_opinion_meanwhile() -> None:
    profile = make_profile([Raw("a", reads=NODES), Raw("b")])
    state = make_state([make_node(f"n{each}", labels={"a": "90"}) for each in range(3)])
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [90, 90, 90]
    state.remove_node("n2")
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [0, 0]
    state.add_node(make_node("n2"))
    assert ranks(verdicts) == [0, 0, 0]


def test_a_row_that_comes_back_when_nobody_scores_any_more_has_no_rank_of_before() -> None:
    profile = make_profile([Raw("a", reads=NODES)])
    state = make_state([make_node(f"n{each}", labels={"a": "90"}) for each in range(3)])
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [90, 90, 90]
    state.remove_node("n2")
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [1, 1]
    state.add_node(make_node("n2"))
    assert ranks(verdicts) == [1, 1, 1]


def test_a_rule_that_finds_its_opinion_on_one_row_is_asked_about_all() -> None:
    profile = make_profile([Raw("a"), Raw("b")])
    nodes = [make_node(f"n{each}", labels={"a": "7", "a-silent": ""}) for each in range(6)]
    state = make_state(nodes)
    verdicts = Verdicts(profile, state)
    assert ranks(verdicts) == [0] * 6
    for number in range(1, 6):
        state.update_node(make_node(f"n{number}", labels={"a": "7"}))
    assert ranks(verdicts) == [0] * 6
    state.update_node(make_node("n0", labels={"a": "9"}))
    assert ranks(verdicts) == [9, 7, 7, 7, 7, 7]


def test_after_a_rule_failed_nothing_half_done_is_used() -> None:
    profile = make_profile([Raw("a", scale="highest_best"), Raw("b")])
    nodes = [make_node(f"n{each}", labels={"a": str(each * 10)}) for each in range(6)]
    state = make_state(nodes)
    verdicts = Verdicts(profile, state)
    ranks(verdicts)
    state.update_node(make_node("n5", labels={"a": "5", "b-fails": ""}))
    with pytest.raises(PluginError, match=r"b\.score failed: KeyError\('b'\)"):
        ranks(verdicts)
    state.update_node(make_node("n5", labels={"a": "5"}))
    assert ranks(verdicts) == rebuilt_ranks(profile, state)


class OnlyLabelled:
    """Refuses the pod when no node has the label; narrows to those that have it."""

    name = "OnlyLabelled"
    reads = NODE

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | frozenset[str]:
        labelled = (
            nodes.node(at).name for at in range(len(nodes)) if "good" in nodes.node(at).labels
        )
        return frozenset(labelled) or PodRejection("no node has the label")


def test_a_pre_filter_always_sees_every_node() -> None:
    nodes = [make_node(f"n{number}", labels={"good": ""}) for number in range(6)]
    state = make_state(nodes)
    verdicts = Verdicts(make_profile([OnlyLabelled()]), state)
    verdicts.of(POD)
    state.update_node(make_node("n3"))
    assert verdicts.of(POD).pod_rejection is None
    assert verdicts.of(POD).feasible.tolist() == [True, True, True, False, True, True]


def test_a_node_that_came_while_the_pod_was_refused_is_searched_afterwards() -> None:
    state = make_state([make_node("n0", labels={"good": ""}), make_node("n1")])
    verdicts = Verdicts(make_profile([OnlyLabelled()]), state)
    verdicts.of(POD)
    state.update_node(make_node("n0"))
    assert verdicts.of(POD).pod_rejection == ("OnlyLabelled", PodRejection("no node has the label"))
    state.add_node(make_node("n2", labels={"good": ""}))
    assert verdicts.of(POD).feasible.tolist() == [False, False, True]


def test_reasons_that_nobody_gives_any_more_are_let_go() -> None:
    class Talkative:
        name = "Talkative"
        reads = READING
        said = 0

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            self.said += 1
            return [Rejection(np.ones(len(nodes), np.bool_), f"refused {self.said} times")]

    state = ten()
    verdicts = Verdicts(make_profile([Talkative()]), state)
    for _ in range(100):
        state.publish("x", Reading())
        verdicts.of(POD)
    assert verdicts.of(POD).reason_counts() == {"refused 100 times": 10}


def test_terms_that_pods_carry_concern_every_row() -> None:
    counts = Counts(NODES | TERMS)
    state = ten()
    verdicts = Verdicts(make_profile([counts]), state)
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    carrier = make_pod("carrier", on="n3", spec={"affinity": {"podAntiAffinity": terms}})
    for change in (
        lambda: state.place(carrier),
        lambda: state.place(make_pod("plain", on="n3")),
        lambda: state.remove_pod(carrier.uid),
        lambda: state.remove_pod(make_pod("plain").uid),
    ):
        verdicts.of(POD)
        change()
    verdicts.of(POD)
    assert counts.judged == [10, 10, 10]  # at first, and when the carrier came and went
