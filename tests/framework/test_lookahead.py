"""Rows that were judged ahead: what is kept is what is judged anew, whatever happens to them."""

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.reading import Reading
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import IntArray, Nodes, Pod, Rejection
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.kinds import Namespace
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import signature_of
from lowtide.objects.workloads import Service
from lowtide.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_profile, make_state

NODES = 600  # more than are judged ahead


class Crowd:
    """Likes nodes with few pods, and rejects those with three, or with one where there is a
    namespace; remembers what it was asked."""

    name = "Crowd"
    kinds = (Namespace,)

    def __init__(self) -> None:
        self.most = 3
        self.likes_company = False
        self.asked: list[int] = []

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        self.asked.append(len(nodes))
        most = 1 if nodes.objects(Namespace) else self.most
        yield Rejection(nodes.pod_count >= most, "crowded")

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        few: IntArray = 10 * np.minimum(nodes.pod_count, 10)
        return few if self.likes_company else 100 - few


def pod(number: int, cpu: str = "100m") -> Pod:
    return make_pod(f"{cpu}-{number}", cpu=cpu)


def table(profile: Profile, state: ClusterState, verdict: Verdict) -> tuple[Any, Any]:
    return verdict.feasible.tolist(), verdict.rank().tolist()


def anew(profile: Profile, state: ClusterState) -> tuple[Any, Any]:
    verdict = Verdict(profile, state, pod(0), signature_of(pod(0)))
    verdict.refresh()
    return table(profile, state, verdict)


class Placing:
    """Pods of one signature, each on one of the best nodes."""

    def __init__(self, nodes: int = NODES, with_plugins: Sequence[Any] = ()) -> None:
        self.crowd = Crowd()
        fit = NodeResourcesFit(NodeResourcesFitArgs())
        self.profile = make_profile([self.crowd, fit, *with_plugins])
        self.state = make_state([make_node(f"n{number}", cpu="1") for number in range(nodes)])
        self.verdicts = VerdictCache(self.profile, self.state)
        self.placed = 0
        self.last = 0
        self.signature: object = None

    def place(self) -> None:
        one = pod(self.placed)
        verdict = self.verdicts.verdict_on(one)
        ranked = verdict.rank()
        best = np.flatnonzero(ranked == ranked.max())
        self.last = int(best[self.placed % len(best)])
        self.signature = verdict.signature
        self.state.assume(one, self.state.names[self.last], self.signature)
        self.placed += 1

    def seen(self) -> tuple[Any, Any]:
        return table(self.profile, self.state, self.verdicts.verdict_on(pod(self.placed)))


@pytest.mark.parametrize("nodes", [5, 300, NODES])
def test_what_is_kept_is_what_is_judged_anew(nodes: int) -> None:
    placing = Placing(nodes)
    for _ in range(min(2 * nodes, 400)):
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)


def test_few_questions_are_asked_about_many_pods() -> None:
    placing = Placing()
    for _ in range(200):
        placing.place()
    assert len(placing.crowd.asked) < 10


def test_few_questions_are_asked_where_some_pods_come_to_a_node_before_the_next() -> None:
    placing = Placing(nodes=20)
    placing.crowd.most, placing.crowd.likes_company = 8, True
    for _ in range(100):
        placing.place()
    assert len(placing.crowd.asked) < 50


def test_a_pod_that_was_asked_about_before_it_changed_comes_as_what_it_is_now() -> None:
    placing = Placing(nodes=5)
    for _ in range(3):
        placing.place()
    before, now = pod(999), make_pod(pod(999).name, cpu="900m")
    assert before.uid == now.uid
    placing.verdicts.verdict_on(before).rank()
    verdict = placing.verdicts.verdict_on(now)
    row = int(verdict.rank().argmax())
    placing.state.assume(now, placing.state.names[row], verdict.signature)
    assert placing.seen() == anew(placing.profile, placing.state)


def test_what_was_said_ahead_stands_where_pods_only_get_labels() -> None:
    """The API server gives them some when it binds, which is told a little later."""
    placing, names = Placing(), []
    for number in range(60):
        placing.place()
        names.append(placing.state.names[placing.last])
        if number >= 3:
            one, name = pod(number - 3), names[number - 3]
            placing.state.place(make_pod(one.name, cpu="100m", on=name, labels={"zone": "z"}))
        assert placing.seen() == anew(placing.profile, placing.state)
    assert len(placing.crowd.asked) < 10 + 60  # besides those of `anew`


class Zoned:
    """Likes nodes whose pods have the label."""

    name = "Zoned"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        zoned = [sum("zone" in each.labels for each in nodes.pods(at)) for at in range(len(nodes))]
        return 10 * np.array(zoned, np.int64)


def test_a_plugin_that_reads_the_labels_of_pods_hears_of_them() -> None:
    placing = Placing(nodes=20)
    placing.crowd.most = 9
    placing.profile = make_profile([placing.crowd, Zoned()])
    placing.verdicts = VerdictCache(placing.profile, placing.state)
    for number in range(60):
        placing.place()
        name = placing.state.names[placing.last]
        placing.state.place(make_pod(pod(number).name, cpu="100m", on=name, labels={"zone": "z"}))
        assert placing.seen() == anew(placing.profile, placing.state)


class Silent:
    """Says nothing unless it is asked about the node that has the label, which breaks the contract:
    it should look for that among all nodes."""

    name = "Silent"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        is_there = any("loud" in nodes.node(at).labels for at in range(len(nodes)))
        return np.full(len(nodes.pod_count), 50, np.int64) if is_there else None


def test_a_plugin_that_says_nothing_of_the_rows_ahead_may_say_something_of_all() -> None:
    loud = make_node("loud", cpu="1", labels={"loud": ""}, unschedulable=True)
    placing = Placing()
    placing.profile = make_profile([NodeUnschedulable(), placing.crowd, Silent()])
    placing.state = make_state([loud, *(make_node(f"n{each}", cpu="1") for each in range(300))])
    placing.verdicts = VerdictCache(placing.profile, placing.state)
    for _ in range(8):
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)


def test_rows_are_hardly_judged_ahead_where_that_is_of_no_use() -> None:
    """Each pod of the signature comes after another to its node: what was said never comes true."""
    placing = Placing()
    for number in range(40):
        placing.place()
        placed, node_name = pod(number), placing.state.names[placing.last]
        placing.state.forget(placed.uid)
        placing.state.assume(pod(number, cpu="1m"), node_name)
        placing.state.assume(placed, node_name, placing.signature)
    assert sum(asked > 300 for asked in placing.crowd.asked) < 8


def test_rows_are_hardly_judged_ahead_where_others_have_to_be_judged_anyway() -> None:
    """Between two pods of the signature another comes elsewhere: what was said comes true, and yet
    the plugins have to be asked."""
    placing = Placing()
    for number in range(40):
        placing.place()
        elsewhere = placing.state.names[(placing.last + 300) % NODES]
        placing.state.assume(pod(number, cpu="1m"), elsewhere)
    assert sum(asked > 300 for asked in placing.crowd.asked) < 8


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(
            lambda it: it.state.assume(pod(0, cpu="300m"), it.state.names[it.last]),
            id="a pod of another signature comes to the row too",
        ),
        pytest.param(
            lambda it: [
                it.state.assume(pod(number, cpu="300m"), it.state.names[it.last + number])
                for number in range(1, 9)
            ],
            id="pods of another signature come to the next rows",
        ),
        pytest.param(
            lambda it: it.state.assume(pod(7777), it.state.names[it.last]),
            id="a pod of the signature comes that was not decided on",
        ),
        pytest.param(
            lambda it: it.state.remove_pod(pod(it.placed - 1).uid),
            id="the pod is removed again",
        ),
        pytest.param(
            lambda it: it.state.update_node(make_node(it.state.names[it.last], cpu="64")),
            id="the node changes",
        ),
        pytest.param(
            lambda it: it.state.remove_node(it.state.names[it.last]), id="the node is removed"
        ),
        pytest.param(
            lambda it: it.state.remove_node(it.state.names[-1]), id="the last node is removed"
        ),
        pytest.param(
            lambda it: it.state.add_node(make_node("new", cpu="2")), id="another node is added"
        ),
        pytest.param(lambda it: it.state.publish("source", Reading()), id="a reading is published"),
        pytest.param(
            lambda it: it.state.put_object(Namespace(ObjectMeta(name="blue"))),
            id="an object is added of a kind that a plugin read",
        ),
    ],
)
@pytest.mark.parametrize("placed_before", [2, 3, 40])
def test_what_was_said_ahead_does_not_count_where(
    happens: Callable[[Placing], object], placed_before: int
) -> None:
    placing = Placing()
    for _ in range(placed_before):
        placing.place()
    happens(placing)
    assert placing.seen() == anew(placing.profile, placing.state)
    for _ in range(20):
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)


class Gate:
    """Closes all nodes at once where there is a Service."""

    name = "Gate"
    kinds = (Service,)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        yield Rejection(np.full(len(nodes), bool(nodes.objects(Service))), "closed")


def test_where_only_an_object_changed_what_filters_say_counts_in_ranks() -> None:
    placing = Placing(nodes=5, with_plugins=[Gate()])
    placing.place()
    placing.seen()
    placing.state.put_object(Service(ObjectMeta(name="web")))
    assert placing.seen() == ([False] * 5, [-1] * 5)


def preferring(weight: int, disk: str) -> dict[str, Any]:
    wanted = {"key": "disk", "operator": "In", "values": [disk]}
    return {"weight": weight, "preference": {"matchExpressions": [wanted]}}


def test_what_was_said_ahead_is_not_all_where_the_best_node_is_full() -> None:
    """It gave others the measure, which changes for all of them."""
    best, good = preferring(100, "best"), preferring(40, "good")
    term = "preferredDuringSchedulingIgnoredDuringExecution"
    spec = {"affinity": {"nodeAffinity": {term: [best, good]}}}
    disks = ["best", *["good"] * 4, "bad"]
    nodes = [make_node(f"n{at}", cpu="1", labels={"disk": disk}) for at, disk in enumerate(disks)]
    plugins = [NodeResourcesFit(NodeResourcesFitArgs()), NodeAffinity(NodeAffinityArgs())]
    profile, state = make_profile(plugins, {"NodeAffinity": 20}), make_state(nodes)
    verdicts = VerdictCache(profile, state)
    for number in range(5):
        one = make_pod(f"{number}", cpu="300m", spec=spec)
        verdict = verdicts.verdict_on(one)
        ranked = verdict.rank()
        assert ranked.tolist() == VerdictCache(profile, state).verdict_on(one).rank().tolist()
        state.assume(one, state.names[int(ranked.argmax())], verdict.signature)


class Labels:
    """Has read the labels of pods, and thinks nothing of it."""

    name = "Labels"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        seen = [nodes.pods(at) for at in range(len(nodes))]
        return np.full(len(seen), 50, np.int64)


def test_a_plugin_that_reads_labels_leaves_what_others_said_ahead() -> None:
    placing = Placing(with_plugins=[Labels()])
    for _ in range(200):
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)
    assert len(placing.crowd.asked) < 10 + 2 * 200  # those that `anew` asks


class Wary(Crowd):
    """Rejects nodes with two pods, or does not, as all pods of the cluster are."""

    name = "Wary"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Rejection]:
        self.asked.append(len(nodes))
        crowded = nodes.pod_count >= 2
        if crowded.any():
            crowded &= int(nodes.everything.pod_count.sum()) % 3 == 0
        yield Rejection(crowded, "crowded")


def test_what_was_said_ahead_is_dropped_where_it_depends_on_other_rows() -> None:
    wary = Wary()
    placing = Placing(nodes=20, with_plugins=[wary])
    placing.crowd.likes_company = True
    for _ in range(30):
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)


class OncePlain:
    """Scores by pods. While the node has that label, which is read on the node alone, it looks at
    more than that."""

    name = "OncePlain"

    def __init__(self, look: Callable[[Nodes], object]) -> None:
        self._look = look

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        if any("more" in nodes.node(at).labels for at in range(len(nodes))):
            self._look(nodes)
        return np.full(len(nodes), 7, np.int64)


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda nodes: nodes.pod_count, id="its pods"),
        pytest.param(lambda nodes: nodes.everything.pod_count, id="the pods of all nodes"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_what_was_said_ahead_is_of_the_plugins_that_were_asked(
    look: Callable[[Nodes], object], before: bool
) -> None:
    """Others may join them, or leave them, when what they touch changes."""
    placing = Placing()
    placing.profile = make_profile([placing.crowd, OncePlain(look)])
    placing.verdicts = VerdictCache(placing.profile, placing.state)
    more, plain = make_node("n599", cpu="1", labels={"more": ""}), make_node("n599", cpu="1")
    placing.state.update_node(more if before else plain)
    for number in range(40):
        if number % 8 == 5:
            has_more = before is (number % 16 == 13)
            placing.state.update_node(more if has_more else plain)
            placing.seen()
        placing.place()
        assert placing.seen() == anew(placing.profile, placing.state)


@pytest.mark.parametrize("nodes", [100, NODES])
def test_verdicts_take_no_more_memory_than_they_say(nodes: int) -> None:
    state = make_state([make_node(f"n{number}", cpu="64") for number in range(nodes)])
    verdicts = VerdictCache(make_profile([NodeResourcesFit(NodeResourcesFitArgs())]), state)

    def place(signature: int, verdicts: VerdictCache) -> Verdict:
        for number in range(5):
            one = make_pod(f"{signature}-{number}", cpu=f"{100 + signature}m")
            verdict = verdicts.verdict_on(one)
            state.assume(one, state.names[int(verdict.rank().argmax())], verdict.signature)
        return verdict

    place(-1, verdicts)
    gc.collect()
    tracemalloc.start()
    try:
        said_bytes = sum(place(signature, verdicts).bytes_when_full for signature in range(20))
        taken_bytes, _ = tracemalloc.get_traced_memory()
        del verdicts
        gc.collect()
        left_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said_bytes / 3 < taken_bytes - left_bytes < said_bytes


@pytest.mark.parametrize(
    "cpu",
    [
        pytest.param("1m", id="of pods that fit"),
        pytest.param("99", id="of pods that fit nowhere and are never scored"),
    ],
)
def test_verdicts_keep_nothing_of_the_rows_that_changed(cpu: str) -> None:
    state = make_state([make_node(f"n{number}", cpu="64") for number in range(2000)])
    verdicts = VerdictCache(make_profile([NodeResourcesFit(NodeResourcesFitArgs())]), state)
    pods = [make_pod(f"pod-{number}", cpu=cpu, memory=f"{1 + number}Mi") for number in range(20)]

    def ask(verdicts: VerdictCache) -> None:
        for each in pods:
            verdict = verdicts.verdict_on(each)
            if verdict.feasible.any():
                verdict.rank()

    for _ in range(2):  # signatures that come once are not kept
        ask(verdicts)
    state.place(make_pod("first", on="n0"))
    ask(verdicts)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(900):
            state.place(make_pod(f"placed-{number}", cpu="100m", on=f"n{number}"))
        ask(verdicts)
        gc.collect()
        with_rows, _ = tracemalloc.get_traced_memory()
        state.place(make_pod("last", on="n0"))
        ask(verdicts)
        gc.collect()
        without_rows, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # That of the last verdict takes some 125 bytes for each row, those of 20 took 80 to 125 each.
    assert with_rows - without_rows < 2 * 125 * 900
