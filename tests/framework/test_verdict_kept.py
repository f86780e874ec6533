"""What is kept of verdicts between pods, and which rows are judged again."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import (
    IntArray,
    Nodes,
    PluginError,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import bytes_in_memory, signature_of
from lowtide.objects.workloads import Service
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_profile, make_state

POD = make_pod()


Read = Callable[[Nodes], object]

EVERY_POD = PodSelection.from_requirements(
    labels_required({}), namespaces=None, counts_terminating=True
)
READS: dict[str, Read] = {
    "its node": lambda nodes: nodes.unschedulable,
    "what its pods take": lambda nodes: nodes.pod_count,
    "its pods' labels": lambda nodes: nodes.pods_matching(EVERY_POD),
    "its reading": lambda nodes: nodes.reading("x"),
    "all nodes": lambda nodes: nodes.everything.unschedulable,
    "how many nodes": lambda nodes: len(nodes.everything),
    "what all pods take": lambda nodes: nodes.everything.pod_count,
    "all pods' labels": lambda nodes: nodes.everything.pods_matching(EVERY_POD),
    "all pods' terms": lambda nodes: list(nodes.terms_about(POD)),
    "all readings": lambda nodes: nodes.everything.reading("x"),
    "namespaces": lambda nodes: nodes.objects(Namespace),
    "nothing": lambda nodes: None,
}
ALL_NODES = ("all nodes", "how many nodes")
ALL_PODS = ("what all pods take", "all pods' labels")
ALL = (*ALL_NODES, *ALL_PODS, "all pods' terms", "all readings")


class Counts:
    """Accepts all, reads something, and counts on how many rows it was asked."""

    kinds = (Namespace,)

    def __init__(self, read: Read = READS["its node"], name: str = "Counts") -> None:
        self.name = name
        self._read = read
        self.judged: list[int] = []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        self._read(nodes)
        self.judged.append(len(nodes))
        return ()


def ten(*pods: Pod) -> ClusterState:
    return make_state([make_node(f"n{number}") for number in range(10)], pods)


def namespace(**labels: str) -> Namespace:
    return Namespace(ObjectMeta(name="blue", labels=labels))


TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
CARRIER = make_pod("carrier", on="n3", spec={"affinity": {"podAntiAffinity": TERMS}})
GONE, RELABELLED = make_pod("gone", on="n3"), make_pod("relabelled", on="n3")


def each(names: Iterable[str], *judged: int) -> dict[str, list[int]]:
    return {name: [*judged] for name in names}


@pytest.mark.parametrize(
    ("event", "judged"),
    [
        pytest.param(
            lambda state: state.update_node(make_node("n3", cpu="9")),
            {**each(ALL_NODES, 10), "its node": [1]},
            id="a node changes",
        ),
        pytest.param(
            lambda state: state.update_node(make_node("n3", annotations={"beat": "1"})),
            {**each(ALL_NODES, 10), "its node": [1]},
            id="a node's annotation changes",
        ),
        pytest.param(
            lambda state: state.update_node(make_node("n3")), {}, id="a node stays as it is"
        ),
        pytest.param(
            lambda state: state.place(make_pod("p", on="n3")),
            {**each(ALL_PODS, 10), **each(("what its pods take", "its pods' labels"), 1)},
            id="a pod comes",
        ),
        pytest.param(
            lambda state: state.assume(make_pod("p"), "n3"),
            {**each(ALL_PODS, 10), **each(("what its pods take", "its pods' labels"), 1)},
            id="a pod is assumed",
        ),
        pytest.param(
            lambda state: state.remove_pod(GONE.uid),
            {**each(ALL_PODS, 10), **each(("what its pods take", "its pods' labels"), 1)},
            id="a pod goes",
        ),
        pytest.param(
            lambda state: state.place(make_pod("relabelled", on="n3", labels={"app": "a"})),
            {"all pods' labels": [10], "its pods' labels": [1]},
            id="a pod gets a label",
        ),
        pytest.param(
            lambda state: state.place(make_pod("p", on="unknown")),
            {},
            id="a pod comes to an unknown node",
        ),
        pytest.param(
            lambda state: state.place(CARRIER),
            {
                **each((*ALL_PODS, "all pods' terms"), 10),
                **each(("what its pods take", "its pods' labels"), 1),
            },
            id="a pod comes with affinity terms",
        ),
        pytest.param(
            lambda state: state.publish("x", Reading()),
            each(("its reading", "all readings"), 10),
            id="a reading is published",
        ),
        pytest.param(
            lambda state: state.put_object(namespace(team="x")),
            {"namespaces": [10]},
            id="an object changes",
        ),
        pytest.param(
            lambda state: state.remove_object(namespace()),
            {"namespaces": [10]},
            id="an object goes",
        ),
        pytest.param(
            lambda state: state.put_object(
                Namespace(ObjectMeta(name="blue", resource_version="2"))
            ),
            {},
            id="an object stays as it is",
        ),
        pytest.param(
            lambda state: state.put_object(Service(ObjectMeta(name="web"))),
            {},
            id="an object of an unread kind is added",
        ),
        pytest.param(
            lambda state: state.add_node(make_node("new")),
            {**each(READS, 1), **each(ALL, 11)},
            id="a node comes",
        ),
        pytest.param(
            lambda state: state.remove_node("n3"),
            {**each(READS, 1), **each(ALL, 9)},
            id="a node is removed and the last row takes its place",
        ),
        pytest.param(
            lambda state: state.remove_node("n9"),
            each(ALL, 9),
            id="the node of the last row is removed",
        ),
        pytest.param(
            lambda state: [state.place(make_pod(f"p{n}", on=f"n{n}")) for n in range(6)],
            each((*ALL_PODS, "what its pods take", "its pods' labels"), 10),
            id="pods come to more than half of the rows",
        ),
    ],
)
def test_only_plugins_that_touched_what_changed_are_asked_again_where(
    event: Callable[[ClusterState], Any], judged: dict[str, list[int]]
) -> None:
    plugins = {name: Counts(read, name) for name, read in READS.items()}
    state = ten(GONE, RELABELLED)
    state.put_object(namespace())
    verdicts = VerdictCache(make_profile(list(plugins.values())), state)
    verdicts.verdict_on(POD)
    event(state)
    verdicts.verdict_on(POD)
    verdicts.verdict_on(POD)
    assert {name: plugin.judged[0] for name, plugin in plugins.items()} == dict.fromkeys(READS, 10)
    again = {name: plugin.judged[1:] for name, plugin in plugins.items()}
    assert again == {**each(READS), **judged}


class LooksCloser(Counts):
    """Reads its nodes, and also the pods of those with the label `closer`."""

    def __init__(self) -> None:
        super().__init__(self._look_closer)

    def _look_closer(self, nodes: Nodes) -> None:
        for position in range(len(nodes)):
            if "closer" in nodes.node(position).labels:
                nodes.pods(position)


def test_what_is_touched_about_few_rows_adds_up() -> None:
    plugin, state = LooksCloser(), ten()
    verdicts = VerdictCache(make_profile([plugin]), state)
    for event, judged in (
        (lambda: state.place(make_pod("one", on="n3")), []),
        (lambda: state.update_node(make_node("n3", labels={"closer": ""})), [1]),
        (lambda: state.place(make_pod("two", on="n3")), [1]),
        (lambda: state.update_node(make_node("n5", cpu="1")), [1]),  # no pods are touched now
        (lambda: state.place(make_pod("three", on="n3")), [1]),
    ):
        verdicts.verdict_on(POD)
        plugin.judged.clear()
        event()
        verdicts.verdict_on(POD)
        assert plugin.judged == judged


def test_what_is_touched_about_all_rows_counts_alone() -> None:
    plugin, state = LooksCloser(), ten()
    state.update_node(make_node("n3", labels={"closer": ""}))
    verdicts = VerdictCache(make_profile([plugin]), state)
    verdicts.verdict_on(POD)
    for number in range(10):
        state.update_node(make_node(f"n{number}", cpu="1"))  # nobody has the label
    verdicts.verdict_on(POD)
    state.place(make_pod("one", on="n3"))
    verdicts.verdict_on(POD)
    assert plugin.judged == [10, 10]


def test_a_filter_that_was_asked_about_few_rows_hears_of_what_it_touched_there_elsewhere() -> None:
    """As what one row says may depend on all of them from then on."""

    def read(nodes: Nodes) -> None:
        if nodes.unschedulable.any():
            nodes.everything.reading("x")

    plugin, state = Counts(read), ten()
    verdicts = VerdictCache(make_profile([plugin]), state)
    verdicts.verdict_on(POD)
    state.update_node(make_node("n3", unschedulable=True))
    verdicts.verdict_on(POD)
    state.publish("x", Reading())
    verdicts.verdict_on(POD)
    assert plugin.judged == [10, 1, 10]


class AvoidsPodsWhileClosed:
    """Reads what pods take only while there is a namespace; without, it reads namespaces alone."""

    name = "AvoidsPodsWhileClosed"
    kinds = (Namespace,)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        if nodes.objects(Namespace):
            yield Rejection(nodes.pod_count > 0, "closed")


def test_a_plugin_that_reads_less_than_before_is_heard_about_every_row() -> None:
    """It is no longer one of those that go by their own row, in the course of being asked."""
    nodes = [make_node(name) for name in ("a", "b", "c", "d", "e")]
    state = make_state(nodes, [make_pod("p", on="b"), make_pod("q", on="c")])
    closed = Namespace(ObjectMeta(name="closed"))
    state.put_object(closed)
    verdicts = VerdictCache(make_profile([AvoidsPodsWhileClosed()]), state)
    assert verdicts.verdict_on(POD).feasible.tolist() == [True, False, False, True, True]
    state.remove_object(closed)
    state.remove_pod("default/p")
    assert verdicts.verdict_on(POD).feasible.tolist() == [True] * 5


class CountsFeasible:
    name = "CountsFeasible"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.full(len(nodes), nodes.everything.feasible.sum(), np.int64)


@pytest.mark.parametrize("looks_at_scores", [True, False])
@pytest.mark.parametrize("cordoned", [True, False])
def test_a_node_that_comes_where_another_one_went_is_counted_as_feasible(
    looks_at_scores: bool, cordoned: bool
) -> None:
    state = make_state([make_node(name) for name in ("a", "b", "c")])
    verdicts = VerdictCache(make_profile([NodeUnschedulable(), CountsFeasible()]), state)
    assert verdicts.verdict_on(POD).rank().tolist() == [3, 3, 3]
    state.remove_node("c")
    fewer = verdicts.verdict_on(POD)
    if looks_at_scores:
        assert fewer.rank().tolist() == [2, 2]
    state.add_node(make_node("d", unschedulable=cordoned))
    assert verdicts.verdict_on(POD).rank().tolist() == ([2, 2, -1] if cordoned else [3, 3, 3])


def test_pods_of_one_signature_share_a_verdict() -> None:
    plugin = Counts()
    verdicts = VerdictCache(make_profile([plugin]), ten())
    assert verdicts.verdict_on(make_pod("p")) is verdicts.verdict_on(make_pod("q"))
    assert verdicts.verdict_on(make_pod("p")) is not verdicts.verdict_on(make_pod("p", cpu="1"))
    assert plugin.judged == [10, 10]


def asked_twice(verdicts: VerdictCache, pod: Pod) -> Verdict:
    """About two pods, so that it is kept: a signature that was seen once may never come again."""
    verdicts.verdict_on(pod)
    return verdicts.verdict_on(msgspec.structs.replace(pod, metadata=renamed(pod.metadata)))


def renamed(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(meta, name="another", uid="another")


def test_of_signatures_that_were_asked_about_once_only_the_last_is_kept() -> None:
    plugin = Counts()
    verdicts = VerdictCache(make_profile([plugin]), ten())
    pods = [make_pod(labels={"signature": str(number)}) for number in range(3)]
    former = weakref.ref(verdicts.verdict_on(pods[0]))
    verdicts.verdict_on(pods[0])  # as an extender is asked twice about a pod: that is one time
    asked_twice(verdicts, pods[1])  # while it is the last one: is not judged again, and kept
    assert former() is None
    verdicts.verdict_on(pods[2])
    verdicts.verdict_on(pods[1])
    assert plugin.judged == [10, 10, 10]
    verdicts.verdict_on(pods[0])  # was seen: is judged again, and kept
    verdicts.verdict_on(pods[2])  # likewise
    assert plugin.judged == [10, 10, 10, 10, 10]
    for pod in pods:
        verdicts.verdict_on(pod)
    assert plugin.judged == [10, 10, 10, 10, 10]


def test_of_very_many_signatures_that_were_seen_the_first_are_forgotten() -> None:
    plugin = Counts()
    verdicts = VerdictCache(make_profile([plugin]), ten())
    pods = [make_pod(labels={"signature": str(number)}) for number in range(1025)]
    for pod in (*pods, pods[0], pods[-1], pods[0], pods[-1]):
        verdicts.verdict_on(pod)
    # The first is new again, and then known; the last was known all along.
    assert len(plugin.judged) == 1025 + 3


def test_a_signature_that_was_asked_about_once_hears_of_objects_too() -> None:
    plugin = Counts(READS["namespaces"])
    verdicts = VerdictCache(make_profile([plugin]), ten())
    verdicts.verdict_on(POD)
    verdicts.state.put_object(namespace())
    verdicts.verdict_on(POD)
    assert plugin.judged == [10, 10]


def test_the_oldest_verdict_is_dropped_when_there_are_too_many_bytes() -> None:
    plugin = Counts()
    pods = [make_pod(labels={"signature": str(number)}) for number in range(3)]
    roomy = VerdictCache(make_profile([plugin]), ten()).verdict_on(POD)
    room_for_one = roomy.bytes_when_full + 1.2 * bytes_in_memory(pods[0])
    verdicts = VerdictCache(make_profile([plugin]), ten(), max_bytes=int(2 * room_for_one))
    plugin.judged.clear()
    first = asked_twice(verdicts, pods[0])
    asked_twice(verdicts, pods[1])
    assert verdicts.verdict_on(pods[0]) is first  # now the second is the oldest
    asked_twice(verdicts, pods[2])
    assert verdicts.verdict_on(pods[0]) is first
    assert plugin.judged == [10, 10, 10]
    verdicts.verdict_on(pods[1])
    assert plugin.judged == [10, 10, 10, 10]


def test_large_pods_leave_room_for_fewer_verdicts() -> None:
    plugin = Counts()
    verdicts = VerdictCache(make_profile([plugin]), ten(), max_bytes=1_000_000)
    pods = [make_pod(labels={str(number): "x" * 150_000}) for number in range(2)]
    for pod in (*pods, *pods):
        asked_twice(verdicts, pod)
    assert plugin.judged == [10, 10, 10, 10]


def test_a_verdict_that_would_be_judged_anew_all_over_is_not_kept() -> None:
    """So that the signatures of pods which no longer come take no memory."""
    state = ten()
    verdicts = VerdictCache(make_profile([Counts()]), state)
    former = weakref.ref(asked_twice(verdicts, make_pod(labels={"app": "former"})))
    judged_at = state.log.position
    is_known_all_along = []
    for number in range(10_000):
        if state.log.since(judged_at) is None:
            break
        verdicts.verdict_on(POD)
        is_known_all_along.append(former() is not None)
        state.update_node(make_node("n3", cpu=str(1 + number % 2)))
    present = verdicts.verdict_on(POD)
    assert all(is_known_all_along)
    assert former() is None
    assert verdicts.verdict_on(POD) is present


def test_one_verdict_is_kept_however_small_the_bound() -> None:
    verdicts = VerdictCache(make_profile([Counts()]), ten(), max_bytes=0)
    assert verdicts.verdict_on(POD) is verdicts.verdict_on(POD)


def test_a_verdict_that_could_not_be_given_takes_the_place_of_others_too() -> None:
    class FailsWithLabels:
        name = "FailsWithLabels"

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            if pod.labels:
                raise KeyError("a label")
            return ()

    verdicts = VerdictCache(make_profile([FailsWithLabels()]), ten(), max_bytes=0)
    former = weakref.ref(asked_twice(verdicts, POD))
    for _ in range(2):
        with pytest.raises(PluginError):
            verdicts.verdict_on(make_pod(labels={"app": "web"}))
    assert former() is None


# Kept equals rebuilt: sequences that once broke it.


class Raw:
    """Scores by labels, which a test may change; some take its opinion, or make it fail. It looks
    for these on the nodes that it is asked about, or on all of them."""

    def __init__(self, name: str, *, scale: str | None = None, looks_at_all: bool = False) -> None:
        self.name = name
        self.scale = scale
        self._looks_at_all = looks_at_all

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        labels = labels_of(nodes)
        looked_at = labels_of(nodes.everything) if self._looks_at_all else labels
        if any(self.name + "-fails" in each for each in looked_at):
            raise KeyError(self.name)
        if any(self.name + "-silent" in each for each in looked_at):
            return None
        return np.array([int(each.get(self.name, "0")) for each in labels], np.int64)


def labels_of(nodes: Nodes) -> list[dict[str, str]]:
    return [nodes.node(at).labels for at in range(len(nodes))]


def ranks(verdicts: VerdictCache) -> list[int]:
    return [int(rank) for rank in verdicts.verdict_on(POD).rank()]


def rebuilt_ranks(profile: Profile, state: ClusterState) -> list[int]:
    fresh = make_state([state.node_at(row) for row in range(state.count)])
    return ranks(VerdictCache(profile, fresh))


@pytest.mark.parametrize("scale", [None, "highest_best", "lowest_best"])
def test_rows_that_went_before_anybody_scored_them_are_forgotten(scale: str | None) -> None:
    profile = make_profile([NodeUnschedulable(), Raw("a", scale=scale)])
    nodes = [make_node(f"n{number}", labels={"a": str(number)}) for number in range(10)]
    state = make_state(nodes)
    verdicts = VerdictCache(profile, state)
    ranks(verdicts)
    for number in range(3):
        state.add_node(make_node(f"x{number}", labels={"a": "90"}))
    verdicts.verdict_on(POD)  # filters only: nobody ranks
    for number in range(3):
        state.remove_node(f"x{number}")
    state.update_node(make_node("n3", labels={"a": "1"}))
    assert ranks(verdicts) == rebuilt_ranks(profile, state)


def test_the_highest_score_goes_with_the_last_row() -> None:
    profile = make_profile([Raw("a", scale="highest_best")])
    state = make_state([make_node(f"n{each}", labels={"a": each}) for each in ("10", "50", "100")])
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [10, 50, 100]
    state.remove_node("n100")
    assert ranks(verdicts) == [20, 100]


def test_a_plugin_that_loses_its_opinion_takes_its_points_along() -> None:
    profile = make_profile([Raw("a", looks_at_all=True), Raw("b")])
    state = make_state([make_node("n0", labels={"a": "90"}), make_node("n1", labels={"a": "5"})])
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [90, 5]
    state.update_node(make_node("n0", labels={"a": "90", "a-silent": ""}))
    assert ranks(verdicts) == [0, 0]
    state.update_node(make_node("n0", labels={"a": "80"}))
    assert ranks(verdicts) == [80, 5]


@pytest.mark.parametrize("scale", [None, "highest_best", "lowest_best"])
@pytest.mark.parametrize("beyond", ["300", "-300", str(2**40)])
def test_what_was_beyond_counting_while_a_node_was_rejected_leaves_nothing_behind(
    beyond: str, scale: str | None
) -> None:
    profile = make_profile([Raw("a", scale=scale), Raw("b"), NodeUnschedulable()])
    others = [make_node(f"n{each}", labels={"a": "40", "b": "7"}) for each in (1, 2)]
    rejected = make_node("n0", labels={"a": beyond, "b": beyond}, unschedulable=True)
    verdicts = VerdictCache(profile, make_state([rejected, *others]))
    ranks(verdicts)
    fixed = make_node("n0", labels={"a": "20", "b": "3"})
    verdicts.state.update_node(fixed)
    afresh = VerdictCache(profile, make_state([fixed, *others]))
    assert ranks(verdicts) == ranks(afresh)


def test_the_only_node_loses_the_points_of_a_plugin_that_loses_its_opinion() -> None:
    profile = make_profile([Raw("a", looks_at_all=True), Raw("b")])
    state = make_state([make_node("n0", labels={"a": "90"})])
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [90]
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [0]


def test_a_row_that_went_keeps_no_points_of_a_plugin_that_lost_its_opinion_meanwhile() -> None:
    profile = make_profile([Raw("a", looks_at_all=True), Raw("b")])
    state = make_state([make_node(f"n{each}", labels={"a": "90"}) for each in range(3)])
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [90, 90, 90]
    state.remove_node("n2")
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [0, 0]
    state.add_node(make_node("n2"))
    assert ranks(verdicts) == [0, 0, 0]


def test_a_row_that_comes_back_when_nobody_scores_any_more_has_no_rank_of_before() -> None:
    profile = make_profile([Raw("a", looks_at_all=True)])
    state = make_state([make_node(f"n{each}", labels={"a": "90"}) for each in range(3)])
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [90, 90, 90]
    state.remove_node("n2")
    state.update_node(make_node("n0", labels={"a-silent": ""}))
    assert ranks(verdicts) == [1, 1]
    state.add_node(make_node("n2"))
    assert ranks(verdicts) == [1, 1, 1]


def test_a_plugin_that_finds_its_opinion_on_one_row_is_asked_about_all() -> None:
    profile = make_profile([Raw("a"), Raw("b")])
    nodes = [make_node(f"n{each}", labels={"a": "7", "a-silent": ""}) for each in range(6)]
    state = make_state(nodes)
    verdicts = VerdictCache(profile, state)
    assert ranks(verdicts) == [0] * 6
    for number in range(1, 6):
        state.update_node(make_node(f"n{number}", labels={"a": "7"}))
    assert ranks(verdicts) == [0] * 6
    state.update_node(make_node("n0", labels={"a": "9"}))
    assert ranks(verdicts) == [9, 7, 7, 7, 7, 7]


def test_after_a_plugin_failed_nothing_half_done_is_used() -> None:
    profile = make_profile([Raw("a", scale="highest_best"), Raw("b")])
    nodes = [make_node(f"n{each}", labels={"a": str(each * 10)}) for each in range(6)]
    state = make_state(nodes)
    verdicts = VerdictCache(profile, state)
    ranks(verdicts)
    state.update_node(make_node("n5", labels={"a": "5", "b-fails": ""}))
    with pytest.raises(PluginError, match=r"b\.score failed: KeyError\('b'\)"):
        ranks(verdicts)
    state.update_node(make_node("n5", labels={"a": "5"}))
    assert ranks(verdicts) == rebuilt_ranks(profile, state)


class OnlyLabelled:
    """Rejects the pod when no node has the label; narrows to those that have it."""

    name = "OnlyLabelled"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | frozenset[str]:
        labelled = (
            nodes.node(at).name for at in range(len(nodes)) if "good" in nodes.node(at).labels
        )
        return frozenset(labelled) or PodRejection("no node has the label")


def test_a_pre_filter_always_sees_every_node() -> None:
    nodes = [make_node(f"n{number}", labels={"good": ""}) for number in range(6)]
    state = make_state(nodes)
    verdicts = VerdictCache(make_profile([OnlyLabelled()]), state)
    verdicts.verdict_on(POD)
    state.update_node(make_node("n3"))
    assert verdicts.verdict_on(POD).pod_rejection is None
    assert verdicts.verdict_on(POD).feasible.tolist() == [True, True, True, False, True, True]


def test_a_node_that_came_while_the_pod_was_rejected_is_searched_afterwards() -> None:
    state = make_state([make_node("n0", labels={"good": ""}), make_node("n1")])
    verdicts = VerdictCache(make_profile([OnlyLabelled()]), state)
    verdicts.verdict_on(POD)
    state.update_node(make_node("n0"))
    assert verdicts.verdict_on(POD).pod_rejection == (
        "OnlyLabelled",
        PodRejection("no node has the label"),
    )
    state.add_node(make_node("n2", labels={"good": ""}))
    assert verdicts.verdict_on(POD).feasible.tolist() == [False, False, True]


class Narrow:
    """A pre-filter that reads something, leaves all nodes and counts how often it is asked."""

    name = "Narrow"
    kinds = (Namespace,)

    def __init__(self, read: Read) -> None:
        self._read = read
        self.asked = 0

    def pre_filter(self, pod: Pod, nodes: Nodes) -> None:
        self.asked += 1
        self._read(nodes)


@pytest.mark.parametrize(
    ("read", "event", "is_asked"),
    [
        pytest.param(
            lambda nodes: nodes.node(0),
            lambda state: state.update_node(make_node("n9", cpu="1")),
            True,
            id="read one node and another changes",
        ),
        pytest.param(
            lambda nodes: nodes.node(0),
            lambda state: state.place(make_pod("p", on="n9")),
            False,
            id="read a node and a pod comes",
        ),
        pytest.param(
            lambda nodes: nodes.take(np.array([3])).pod_count,
            lambda state: state.place(make_pod("p", on="n9")),
            True,
            id="read the pods of some nodes and one comes to another",
        ),
        pytest.param(
            lambda nodes: nodes.objects(Namespace),
            lambda state: state.put_object(namespace()),
            True,
            id="read objects and one of them changes",
        ),
        pytest.param(
            lambda nodes: nodes.names,
            lambda state: state.remove_node("n9"),
            True,
            id="read names and a node goes",
        ),
        pytest.param(
            lambda nodes: None,
            lambda state: state.publish("x", Reading()),
            False,
            id="read nothing and a reading is published",
        ),
    ],
)
def test_a_pre_filter_reads_the_whole_table_where_it(
    read: Read, event: Callable[[ClusterState], Any], is_asked: bool
) -> None:
    narrow, state = Narrow(read), ten()
    verdicts = VerdictCache(make_profile([narrow]), state)
    verdicts.verdict_on(POD)
    event(state)
    verdicts.verdict_on(POD)
    assert narrow.asked == 1 + is_asked


def test_reasons_that_nobody_gives_any_more_are_let_go() -> None:
    class Talkative:
        name = "Talkative"
        said = 0

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            self.said += 1
            nodes.reading("x")
            return [Rejection(np.ones(len(nodes), np.bool_), f"rejected {self.said} times")]

    state = ten()
    verdicts = VerdictCache(make_profile([Talkative()]), state)
    for _ in range(100):
        state.publish("x", Reading())
        verdicts.verdict_on(POD)
    assert verdicts.verdict_on(POD).reason_counts() == {"rejected 100 times": 10}


def test_terms_that_pods_carry_concern_every_row() -> None:
    counts, state = Counts(READS["all pods' terms"]), ten()
    verdicts = VerdictCache(make_profile([counts]), state)
    for change in (
        lambda: state.place(CARRIER),
        lambda: state.place(make_pod("plain", on="n3")),
        lambda: state.remove_pod(CARRIER.uid),
        lambda: state.remove_pod(make_pod("plain").uid),
    ):
        verdicts.verdict_on(POD)
        change()
    verdicts.verdict_on(POD)
    assert counts.judged == [10, 10, 10]  # at first, and when the carrier came and went


class MindsOneNeighbour:
    """Local, until a pod is on a row: only then it reads the pods of other rows."""

    name = "MindsOneNeighbour"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        has_one = nodes.pod_count == 1
        if has_one.any():
            are_few = int(nodes.everything.pods_matching(EVERY_POD).sum()) == 1
            yield Rejection(has_one & are_few, "a single pod is there")


def test_a_row_that_a_plugin_rejected_before_it_touched_others_stays_rejected() -> None:
    state, profile = ten(), make_profile([MindsOneNeighbour()])
    kept = Verdict(profile, state, POD, signature_of(POD))
    kept.refresh()
    state.assume(make_pod("first"), "n1", kept.signature)
    kept.refresh()
    assert np.flatnonzero(~kept.feasible).tolist() == [1]
    assert kept.rejection_at(1) is not None


class SharesFeasible:
    name = "SharesFeasible"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        feasible = nodes.everything.feasible
        return np.full(len(nodes), 100 * int(feasible.sum()) // len(feasible), np.int64)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param([lambda it: it.add_node(make_node("new", unschedulable=True))], id="comes"),
        pytest.param([lambda it: it.remove_node("n9")], id="goes"),
        pytest.param(
            [lambda it: it.remove_node("n9"), lambda it: it.add_node(make_node("new"))],
            id="goes, and another one comes",
        ),
    ],
)
def test_all_feasible_nodes_are_other_ones_where_a_node(
    change: list[Callable[[ClusterState], Any]],
) -> None:
    state, profile = ten(), make_profile([NodeUnschedulable(), SharesFeasible()])
    kept = Verdict(profile, state, POD, signature_of(POD))
    for event in (lambda it: None, *change):
        event(state)
        kept.refresh()
        fresh = Verdict(profile, state, POD, signature_of(POD))
        fresh.refresh()
        assert kept.rank().tolist() == fresh.rank().tolist()


def test_a_plugin_that_reads_objects_says_which_to_watch() -> None:
    class Undeclared:
        name = "Undeclared"

        def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
            nodes.objects(Namespace)
            return ()

    text = "^Undeclared reads objects of type Namespace; its `kinds` must name them$"
    with pytest.raises(PluginError, match=text):
        Verdict(make_profile([Undeclared()]), ten(), POD, signature_of(POD)).refresh()


def test_kept_scores_cannot_be_changed_while_they_are_normalized() -> None:
    class WritesBack:
        name = "WritesBack"

        def score(self, pod: Pod, nodes: Nodes) -> IntArray:
            return np.arange(len(nodes))

        def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
            raw -= raw.min()
            return raw

    verdict = Verdict(make_profile([WritesBack()]), ten(), POD, signature_of(POD))
    verdict.refresh()
    with pytest.raises(PluginError, match="read-only"):
        verdict.rank()


def test_the_bound_holds_for_a_hypothetical_question_too() -> None:
    verdicts = VerdictCache(make_profile([Counts()]), ten(), max_bytes=0).without("default/none")
    former = weakref.ref(asked_twice(verdicts, make_pod(labels={"app": "former"})))
    asked_twice(verdicts, POD)
    assert former() is None
