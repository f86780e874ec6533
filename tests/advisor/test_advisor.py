"""The advisor: what it leaves out and prefers, and that it keeps nothing of what it is asked."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.advisor.advisor import UNKNOWN_NODE, Advisor
from lowtide.cluster.nodes import Nodes
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.framework.decision import ScoreTable
from lowtide.framework.plugin import (
    BoolArray,
    IntArray,
    OneNode,
    PluginError,
    Pod,
    Rejection,
    filter_each,
    score_each,
)
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Deleted, Listed, Modified
from lowtide.objects.extender import NodeSeen
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.pod import PodCondition, PodStatus
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import Allocatable, UsageSample, usage_reading
from lowtide.scheduler.events import ReadingPublished
from lowtide.testing import make_node, make_pod, make_profile

LACKS = "node(s) did not have label disk"
LABELLED = {"disk": "ssd"}


class Heard:
    """Keeps what the advisor tells."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def rule_failed(self, error: PluginError) -> None:
        self.errors.append(f"{error.rule_name}: {error}")

    def tells(self, profile: Profile) -> bool:
        return False

    def filtered(self, pod: Pod, profile: Profile, nodes: Nodes) -> None:
        raise AssertionError("nobody asked for words")

    def scored(self, profile: Profile, scores: ScoreTable, nodes: Nodes) -> None:
        raise AssertionError("nobody asked for words")


class Broken:
    """Filters and scores, and fails at both."""

    name = "Broken"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        raise KeyError("oops")

    def score(self, pod: Pod, nodes: Nodes, feasible: BoolArray) -> IntArray:
        return np.full(len(nodes), 1000, np.int64)


class FewestPods:
    name = "FewestPods"
    scale = "lowest_best"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return len(node.pods)


class Free:
    """Scores by a label; refuses nodes that hold a pod, which evicting would help."""

    name = "Free"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "node(s) had a pod" if node.pods else None


def advisor(*rules: Any, heard: Heard | None = None, **settings: Any) -> Advisor:
    profile = make_profile(rules)
    return Advisor(
        {profile.scheduler_name: profile},
        {profile.scheduler_name: ExtenderSettings(**settings)},
        heard or Heard(),
    )


def with_nodes(made: Advisor, nodes: Mapping[str, Mapping[str, str]]) -> Advisor:
    for name, labels in nodes.items():
        made.step(Added(make_node(name, labels=dict(labels))), 0.0)
    return made


def by_label(**settings: Any) -> Advisor:
    return advisor(NodeLabel(NodeLabelArgs(label="disk")), **settings)


def usage_advisor() -> Advisor:
    rule = NodeUsage(NodeUsageArgs(unit="millicores"))
    made = with_nodes(advisor(rule), {"k8s-master": {}, "k8s-node1": {}, "k8s-node2": {}})
    samples = {
        name: UsageSample(cpu_milli=used, at=0.0)
        for name, used in [("k8s-master", 264), ("k8s-node1", 87), ("k8s-node2", 67)]
    }
    has = dict.fromkeys(samples, Allocatable(4000, 2**30))
    made.step(ReadingPublished(rule.request, usage_reading(rule.request, samples, has, 0.0)), 0.0)
    return made


def seen(name: str, labels: Mapping[str, str] | None = None) -> NodeSeen:
    return NodeSeen(metadata=ObjectMeta(name=name, labels=dict(labels or {})))


def ask_filter(made: Advisor, *names: str, pod: Pod | None = None) -> FilterAdvice:
    return made.filter(Asked(pod or make_pod("web"), names), now=0.0)


def test_nothing_is_left_out_where_every_node_fits() -> None:
    made = with_nodes(by_label(), {"a": LABELLED, "b": LABELLED})
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=None)


def test_refused_nodes_are_told_with_the_reason() -> None:
    made = with_nodes(by_label(), {"a": {}, "b": LABELLED, "c": {}})
    assert ask_filter(made, "c", "b", "a") == FilterAdvice(
        kept=[1], unresolvable={"c": LACKS, "a": LACKS}
    )


def test_what_evicting_helps_against_is_told_apart() -> None:
    made = with_nodes(advisor(Free()), {"a": {}, "b": {}})
    made.step(Added(make_pod("other", on="a")), 0.0)
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=[1], failed={"a": "node(s) had a pod"})


def test_nodes_that_are_not_known_are_refused() -> None:
    made = with_nodes(by_label(), {"a": LABELLED})
    assert ask_filter(made, "new", "a") == FilterAdvice(
        kept=[1], unresolvable={"new": UNKNOWN_NODE}
    )


@pytest.mark.parametrize(
    ("nodes", "asked", "error"),
    [
        pytest.param({"a": {}, "b": {}}, ["a", "b"], "all node do not have label disk", id="no"),
        pytest.param(
            {"a": {}, "b": {}, "c": LABELLED},
            ["a", "b"],
            "all node do not have label disk",
            id="no asked",
        ),
        pytest.param({}, ["a"], f"0/1 nodes are available: 1 {UNKNOWN_NODE}.", id="no known"),
    ],
)
def test_where_node_fits_the_profile_may_want_an_error(
    nodes: dict[str, dict[str, str]], asked: list[str], error: str
) -> None:
    made = with_nodes(by_label(empty_result="error"), nodes)
    assert ask_filter(made, *asked).error == error
    assert ask_filter(with_nodes(by_label(), nodes), *asked).error == ""


def test_a_pod_that_is_refused_as_a_whole_is_told_what_each_node_lacks() -> None:
    made = with_nodes(by_label(), {"a": {}, "b": {}})
    assert ask_filter(made, "a", "b") == FilterAdvice(
        kept=(), unresolvable={"a": LACKS, "b": LACKS}
    )


def test_a_node_that_is_promised_to_another_pod_is_told_so() -> None:
    made = with_nodes(advisor(Free()), {"a": {}, "b": {}})
    made.step(Added(make_pod("first", nominated="a", priority=5)), 0.0)
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=[1], failed={"a": "node(s) had a pod"})


def test_asked_about_nothing_it_says_nothing() -> None:
    made = with_nodes(by_label(empty_result="error"), {"a": {}})
    assert ask_filter(made) == FilterAdvice(kept=())
    assert made.prioritize(Asked(make_pod("web"), []), now=0.0) == PriorityAdvice([])


def test_the_least_used_node_is_preferred() -> None:
    asked = Asked(make_pod("web"), ["k8s-node1", "k8s-master", "k8s-node2", "new"])
    assert usage_advisor().prioritize(asked, now=0.0) == PriorityAdvice([8, 0, 10, 0])


def test_only_the_asked_nodes_count() -> None:
    asked = Asked(make_pod("web"), ["k8s-node1", "k8s-master"])
    assert usage_advisor().prioritize(asked, now=0.0) == PriorityAdvice([10, 0])


def test_without_an_opinion_all_are_equal() -> None:
    made = with_nodes(advisor(NodeUsage(NodeUsageArgs())), {"a": {}, "b": {}})
    assert made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0) == PriorityAdvice([0, 0])


def test_labels_come_from_the_request_for_one_answer() -> None:
    made = with_nodes(by_label(), {"a": {}, "b": LABELLED, "elsewhere": LABELLED})
    nodes = [seen("a", LABELLED), seen("b"), seen("new", LABELLED)]
    asked = Asked(make_pod("web"), ["a", "b", "new"], nodes)
    assert made.filter(asked, now=0.0) == FilterAdvice(kept=[0, 2], unresolvable={"b": LACKS})
    assert made.state.names == ["a", "b", "elsewhere"]
    assert ask_filter(made, "a", "b").kept == [1]


def test_a_nomination_to_a_node_that_only_the_request_knows_stays() -> None:
    made = with_nodes(by_label(), {"a": {}})
    nominated = make_pod("first", nominated="new")
    made.step(Added(nominated), 0.0)
    made.filter(Asked(make_pod("web"), ["new"], [seen("new")]), now=0.0)
    assert made.state.nominated() == {"new": {nominated.uid: nominated}}


def test_a_rule_that_fails_has_no_say_and_the_others_have() -> None:
    heard = Heard()
    made = with_nodes(
        advisor(Broken(), NodeLabel(NodeLabelArgs(label="disk")), heard=heard),
        {"a": {}, "b": LABELLED},
    )
    assert ask_filter(made, "a", "b").kept == [1]
    assert heard.errors == ["Broken: Broken.filter failed: KeyError('oops')"]


def test_invalid_scores_have_no_say() -> None:
    heard = Heard()
    broken = Broken()
    profile = make_profile([broken, FewestPods()])
    only_scores = Profile(
        profile.scheduler_name, {"score": profile.at("score")}, {"Broken": 1, "FewestPods": 1}
    )
    made = Advisor({"lowtide": only_scores}, {profile.scheduler_name: ExtenderSettings()}, heard)
    with_nodes(made, {"a": {}, "b": {}})
    made.step(Added(make_pod("other", on="a")), 0.0)
    assert made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0).priorities == [0, 10]
    (error,) = heard.errors
    assert error.startswith("Broken: plugin 'Broken' returns an invalid score 1000")


def test_each_answer_books_the_pod_on_its_best_node() -> None:
    made = with_nodes(advisor(FewestPods()), {"a": {}, "b": {}, "c": {}})
    best = []
    for number in range(3):
        asked = Asked(make_pod(f"web-{number}"), ["a", "b", "c"])
        made.filter(asked, now=0.0)
        priorities = made.prioritize(asked, now=0.0).priorities
        best.append(priorities)
    assert [sum(each) for each in best] == [30, 20, 10]


def test_a_pod_is_not_in_its_own_way() -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    assert ask_filter(made, "a").kept is None
    assert ask_filter(made, "a").kept is None
    assert ask_filter(made, "a", pod=make_pod("other")).failed == {"a": "node(s) had a pod"}


@pytest.mark.parametrize(
    "happening",
    [
        pytest.param(lambda made, pod: made.step(Listed("Event"), 10.0), id="time passes"),
        pytest.param(lambda made, pod: made.step(Deleted(pod), 1.0), id="the pod goes"),
        pytest.param(
            lambda made, pod: made.step(Modified(make_pod(pod.name, on="b")), 1.0),
            id="it is bound elsewhere",
        ),
        pytest.param(
            lambda made, pod: made.step(
                Modified(
                    replace(
                        pod, status=PodStatus(conditions=[PodCondition("PodScheduled", "False")])
                    )
                ),
                1.0,
            ),
            id="a scheduler found no node for it",
        ),
    ],
)
def test_a_booking_ends_when(happening: Any) -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    pod = make_pod("first")
    ask_filter(made, "a", pod=pod)
    assert ask_filter(made, "a", pod=make_pod("second")).kept == ()
    happening(made, pod)
    assert ask_filter(made, "a", pod=make_pod("second")).kept is None


def test_what_a_request_says_of_a_nomination_does_not_count() -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    ask_filter(made, "a", pod=make_pod("made-up", nominated="a"))
    made.step(Listed("Event"), 10.0)
    assert made.state.nominated() == {}


def test_what_the_watch_said_of_it_counts_again_after_a_booking() -> None:
    made = with_nodes(advisor(Free()), {"a": {}, "b": {}})
    first, second = make_pod("first", nominated="a"), make_pod("second", nominated="b")
    made.step(Added(first), 0.0)
    for pod in (first, second):
        ask_filter(made, "a", "b", pod=pod)
    assert made.state.nominated() == {}
    made.step(Modified(second), 0.0)
    assert made.state.nominated() == {}
    made.step(Listed("Event"), 10.0)
    assert made.state.nominated() == {"a": {first.uid: first}, "b": {second.uid: second}}


def test_booked_for_no_time_nothing_is_booked() -> None:
    made = with_nodes(advisor(Free(), book_for_seconds=0.0), {"a": {}})
    ask_filter(made, "a", pod=make_pod("first"))
    assert made.state.placed_count == 0


def test_a_pod_that_has_a_node_is_not_moved() -> None:
    made = with_nodes(advisor(FewestPods()), {"a": {}, "b": {}})
    made.step(Added(make_pod("web", on="a")), 0.0)
    made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0)
    placed = made.state.placed(make_pod("web").uid)
    assert placed is not None
    assert placed.node_name == "a"


def test_preempting_leaves_nodes_where_the_pod_fits_without_its_victims() -> None:
    made = with_nodes(
        advisor(Free(), NodeLabel(NodeLabelArgs(label="disk"))),
        {"a": LABELLED, "b": LABELLED, "c": {}},
    )
    pods = {name: make_pod(f"on-{name}", on=name) for name in "abc"}
    other = make_pod("also-on-b", on="b")
    for pod in (*pods.values(), other):
        made.step(Added(pod), 0.0)
    asked = AskedPreemption(
        make_pod("web"), {name: (pod.uid,) for name, pod in pods.items()} | {"new": ("x",)}
    )
    assert made.preempt(asked, now=0.0) == PreemptionAdvice(frozenset("a"))


def test_each_profile_answers_for_its_own_scheduler_and_the_first_for_all_others() -> None:
    profiles = {
        "one": make_profile([NodeLabel(NodeLabelArgs(label="disk"))], name="one"),
        "two": make_profile([NodeLabel(NodeLabelArgs(label="gpu"))], name="two"),
    }
    settings = dict.fromkeys(profiles, ExtenderSettings())
    made = with_nodes(Advisor(profiles, settings, Heard()), {"a": LABELLED, "b": {"gpu": ""}})
    kept = {
        name: ask_filter(made, "a", "b", pod=make_pod("web", scheduler_name=name)).kept
        for name in ("one", "two", "default-scheduler")
    }
    assert kept == {"one": [0], "two": [1], "default-scheduler": [0]}


def test_to_warm_up_books_nothing_and_forgives_a_broken_rule() -> None:
    heard = Heard()
    made = with_nodes(advisor(Broken(), heard=heard), {"a": {}})
    made.warm_up()
    assert (made.state.placed_count, len(heard.errors)) == (0, 1)


def test_until_everything_is_listed_it_says_what_is_not() -> None:
    made = advisor(FewestPods())
    assert made.unlisted == {"Pod", "Node"}
    made.step(Listed("Node"), 0.0)
    made.step(Listed("Pod"), 0.0)
    assert made.unlisted == frozenset()
