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
    IntArray,
    OneNode,
    PluginError,
    Pod,
    Rejection,
    filter_each,
    score_each,
)
from lowtide.framework.profile import Profile
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.extender import NodeSeen
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node import NodeSpec
from lowtide.objects.pod import PodCondition, PodStatus
from lowtide.objects.quantity import QuantityError
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.plugins.node_usage import NodeUsage, NodeUsageArgs
from lowtide.readings.usage import Allocatable, UsageSample, usage_reading
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import ReadingPublished
from lowtide.testing import make_node, make_pod, make_profile

LACKS = "node(s) did not have label disk"
LABELLED = {"disk": "ssd"}
USED = ["k8s-master", "k8s-node1", "k8s-node2"]


class Heard:
    """Keeps what the advisor tells."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.answers: list[Decided] = []
        self.placed: dict[str, str] = {}

    def answered(self, decided: Decided, began_at: float) -> None:
        self.answers.append(decided)

    def pod_placed(self, uid: str, node_name: str) -> None:
        self.placed[uid] = node_name

    def plugin_failed(self, error: PluginError) -> None:
        self.errors.append(f"{error.plugin_name}: {error}")

    def wants_details(self, profile: Profile) -> bool:
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

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.full(len(nodes), 1000, np.int64)


class FewestPods:
    name = "FewestPods"
    scale = "lowest_best"

    @score_each
    def score(self, pod: Pod, node: OneNode) -> int:
        return len(node.pods)


class Only:
    """Leaves one node to be searched."""

    def __init__(self, name: str) -> None:
        self.name = "Only"
        self._left = name

    def pre_filter(self, pod: Pod, nodes: Nodes) -> frozenset[str]:
        return frozenset([self._left])


class Hot:
    """Rejects nodes with a label for a minute."""

    name = "Hot"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        is_hot = np.array(["hot" in nodes.node(at).labels for at in range(len(nodes))], np.bool_)
        yield Rejection(is_hot, "node(s) were hot", gives_way_after=60.0)


class Schedulable:
    name = "Schedulable"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        is_off = node.object.spec.unschedulable or node.object.metadata.annotations
        return "node(s) are off" if is_off else None


class Unreadable:
    name = "Unreadable"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        raise QuantityError("volume v")


class Free:
    """Rejects nodes that hold a pod, which evicting would help."""

    name = "Free"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        return "node(s) had a pod" if node.pods else None


def advisor(*plugins: Any, heard: Heard | None = None, **settings: Any) -> Advisor:
    profile = make_profile(plugins)
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
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    made = with_nodes(advisor(plugin), {"k8s-master": {}, "k8s-node1": {}, "k8s-node2": {}})
    samples = {
        name: UsageSample(cpu_milli=used, at=0.0)
        for name, used in [("k8s-master", 264), ("k8s-node1", 87), ("k8s-node2", 67)]
    }
    has = dict.fromkeys(samples, Allocatable(4000, 2**30))
    made.step(
        ReadingPublished(plugin.request, usage_reading(plugin.request, samples, has, 0.0)), 0.0
    )
    return made


def seen(name: str, labels: Mapping[str, str] | None = None) -> NodeSeen:
    return NodeSeen(metadata=ObjectMeta(name=name, labels=dict(labels or {})))


def ask_filter(made: Advisor, *names: str, pod: Pod | None = None) -> FilterAdvice:
    return made.filter(Asked(pod or make_pod("web"), names), now=0.0)


def test_nothing_is_left_out_where_every_node_fits() -> None:
    made = with_nodes(by_label(), {"a": LABELLED, "b": LABELLED})
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=None)


def test_rejected_nodes_are_told_with_the_reason() -> None:
    made = with_nodes(by_label(), {"a": {}, "b": LABELLED, "c": {}})
    assert ask_filter(made, "c", "b", "a") == FilterAdvice(
        kept=[1], unresolvable={"c": LACKS, "a": LACKS}
    )


def test_what_evicting_helps_against_is_told_apart() -> None:
    made = with_nodes(advisor(Free()), {"a": {}, "b": {}})
    made.step(Added(make_pod("other", on="a")), 0.0)
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=[1], failed={"a": "node(s) had a pod"})


def test_nodes_that_are_not_known_are_rejected() -> None:
    made = with_nodes(by_label(), {"a": LABELLED})
    assert ask_filter(made, "new", "a") == FilterAdvice(
        kept=[1], unresolvable={"new": UNKNOWN_NODE}
    )


@pytest.mark.parametrize(
    ("nodes", "asked", "error"),
    [
        pytest.param({"a": {}, "b": {}}, ["a", "b"], "all node do not have label disk", id="no"),
        pytest.param(
            {"a": {}, "b": {}, "c": {}}, ["a"], "all node do not have label disk", id="no asked"
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


def test_there_is_no_error_where_the_plugins_leave_a_node_that_was_not_asked_about() -> None:
    """kube-scheduler has taken it out, perhaps for want of room, and may evict pods there."""
    made = with_nodes(by_label(empty_result="error"), {"a": {}, "b": LABELLED})
    assert ask_filter(made, "a") == FilterAdvice(kept=(), unresolvable={"a": LACKS})


def test_a_pod_that_is_rejected_as_a_whole_is_told_what_each_node_lacks() -> None:
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


def test_a_plugin_that_fails_has_no_say_and_the_others_have() -> None:
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
        profile.scheduler_name,
        {"score": profile.plugins_for_point("score")},
        {"Broken": 1, "FewestPods": 1},
    )
    made = Advisor({"lowtide": only_scores}, {profile.scheduler_name: ExtenderSettings()}, heard)
    with_nodes(made, {"a": {}, "b": {}})
    made.step(Added(make_pod("other", on="a")), 0.0)
    assert made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0).priorities == [0, 10]
    (error,) = heard.errors
    assert error.startswith("Broken: plugin 'Broken' returns an invalid score 1000")


def best_of(made: Advisor, pod: Pod) -> str:
    """The node that is preferred most, of those of usage_advisor."""
    priorities = made.prioritize(Asked(pod, USED), now=0.0).priorities
    return USED[max(range(len(USED)), key=priorities.__getitem__)]


def test_a_burst_spreads_as_each_answer_books_the_pod_on_its_best_node() -> None:
    made = usage_advisor()
    pods = [make_pod(f"web-{number}", cpu="100m") for number in range(5)]
    assert [best_of(made, pod) for pod in pods] == [
        "k8s-node2",  # 67m, from now on 167m
        "k8s-node1",  # 87m, from now on 187m
        "k8s-node2",
        "k8s-node1",
        "k8s-master",
    ]


def test_filter_books_too() -> None:
    made = usage_advisor()
    made.filter(Asked(make_pod("first", cpu="100m"), USED), now=0.0)
    assert best_of(made, make_pod("second")) == "k8s-node1"


def test_a_pod_is_not_in_its_own_way() -> None:
    made = usage_advisor()
    assert [best_of(made, make_pod("web", cpu="100m")) for _ in range(3)] == ["k8s-node2"] * 3


def test_a_booking_rejects_no_node() -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    assert ask_filter(made, "a", pod=make_pod("first")).kept is None
    assert ask_filter(made, "a", pod=make_pod("second")).kept is None


def test_equal_nodes_take_turns_from_pod_to_pod() -> None:
    made = with_nodes(advisor(Free(), FewestPods()), {name: {} for name in "abcd"})
    booked = []
    for number in range(4):
        pod = make_pod(f"web-{number}")
        asked = Asked(pod, ["a", "b", "c", "d"])
        made.filter(asked, now=0.0)
        made.prioritize(asked, now=0.0)
        booked.append(made.state.ledgers.booked_on(pod.uid))
    assert sorted(booked) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "happening",
    [
        pytest.param(lambda made, pod: made.step(Listed("Event"), 10.0), id="time passes"),
        pytest.param(lambda made, pod: made.step(Deleted(pod), 1.0), id="the pod goes"),
        pytest.param(
            lambda made, pod: made.step(Modified(make_pod(pod.name, on="k8s-master")), 1.0),
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
    made, pod = usage_advisor(), make_pod("first", cpu="100m")
    best_of(made, pod)
    happening(made, pod)
    assert made.state.ledgers.booked_on(pod.uid) is None
    assert best_of(made, make_pod("second")) == "k8s-node2"


def test_what_a_request_says_of_a_nomination_does_not_count() -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    ask_filter(made, "a", pod=make_pod("made-up", nominated="a"))
    made.step(Listed("Event"), 10.0)
    assert made.state.nominated() == {}


def test_a_pod_that_was_bound_is_pending_again_after_the_server_was_set_back() -> None:
    made = with_nodes(advisor(Free()), {"a": {}})
    made.step(Added(make_pod("web", on="a")), 0.0)
    made.step(Modified(make_pod("web")), 0.0)
    assert made.state.placed_count == 0


def test_booked_for_no_time_nothing_is_booked() -> None:
    made = with_nodes(advisor(Free(), book_for_seconds=0.0), {"a": {}})
    ask_filter(made, "a", pod=make_pod("first"))
    assert made.state.ledgers.booked_on("default/first") is None


def test_a_pod_that_has_a_node_is_not_booked() -> None:
    made = with_nodes(advisor(FewestPods()), {"a": {}, "b": {}})
    made.step(Added(make_pod("web", on="a")), 0.0)
    made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0)
    assert made.state.ledgers.booked_on("default/web") is None


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


def test_preempting_asks_what_the_pre_filters_left() -> None:
    made = with_nodes(advisor(Only("b"), Free()), {"a": {}, "b": {}})
    victims = {"a": ("x",), "b": ("y",)}
    asked = AskedPreemption(make_pod("web"), victims)
    assert made.preempt(asked, now=0.0) == PreemptionAdvice(frozenset("b"))


def test_preempting_a_rejection_gives_way_only_where_no_node_is_left() -> None:
    made = with_nodes(advisor(Hot()), {"a": {}, "b": {"hot": ""}})
    asked = {
        name: AskedPreemption(make_pod("web"), dict.fromkeys(name, ("x",))) for name in ("ab", "b")
    }
    assert made.preempt(asked["ab"], now=0.0, waited_seconds=60.0).kept == {"a"}
    assert made.preempt(asked["b"], now=0.0, waited_seconds=59.0).kept == frozenset()
    assert made.preempt(asked["b"], now=0.0, waited_seconds=60.0).kept == {"b"}


def test_a_rejection_gives_way_to_a_pod_that_has_waited() -> None:
    made = with_nodes(advisor(Hot()), {"a": {}, "b": {"hot": ""}})
    asked = Asked(make_pod("web"), ["b"])
    assert made.filter(asked, now=0.0, waited_seconds=59.0).kept == ()
    assert made.filter(asked, now=0.0, waited_seconds=60.0).kept is None


def test_whatever_the_request_says_of_a_node_counts() -> None:
    made = with_nodes(advisor(Schedulable()), {"a": {}, "b": {}, "c": {}})
    nodes = [
        NodeSeen(metadata=ObjectMeta(name="a"), spec=NodeSpec(unschedulable=True)),
        NodeSeen(metadata=ObjectMeta(name="b", annotations={"off": ""})),
        NodeSeen(metadata=ObjectMeta(name="c")),
    ]
    asked = Asked(make_pod("web"), ["a", "b", "c"], nodes)
    assert made.filter(asked, now=0.0).kept == [2]
    assert ask_filter(made, "a", "b", "c").kept is None


def test_nodes_of_a_request_are_put_back_also_when_a_plugin_fails() -> None:
    made = with_nodes(advisor(Unreadable()), {"a": {}})
    with pytest.raises(PluginError, match="a plugin read an invalid quantity: volume v"):
        made.filter(Asked(make_pod("web"), ["a", "b"], [seen("a", LABELLED), seen("b")]), now=0.0)
    assert made.state.names == ["a"]
    assert "disk" not in made.state.node_at(0).labels


def test_a_promise_that_ends_leaves_the_node_again() -> None:
    made = with_nodes(advisor(Free()), {"a": {}, "b": {}})
    rival = make_pod("rival", nominated="a", priority=5)
    made.step(Added(rival), 0.0)
    assert ask_filter(made, "a", "b").kept == [1]
    made.step(Deleted(rival), 0.0)
    assert ask_filter(made, "a", "b").kept is None


def test_only_asked_nodes_are_told() -> None:
    made = with_nodes(by_label(), {"a": {}, "b": LABELLED, "c": {}})
    assert ask_filter(made, "a", "b") == FilterAdvice(kept=[1], unresolvable={"a": LACKS})


def test_scores_are_of_all_asked_nodes_also_of_those_that_a_filter_would_reject() -> None:
    made = with_nodes(
        advisor(NodeLabel(NodeLabelArgs(label="disk")), FewestPods()), {"a": {}, "b": LABELLED}
    )
    made.step(Added(make_pod("other", on="b")), 0.0)
    assert made.prioritize(Asked(make_pod("web"), ["a", "b"]), now=0.0).priorities == [10, 0]


def test_nodes_that_cannot_be_listed_are_not_listed() -> None:
    made = advisor(FewestPods())
    made.step(Unavailable("Node", 403, "no"), 0.0)
    assert made.unlisted == {"Pod", "Node"}


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


def test_to_warm_up_books_nothing_and_forgives_a_broken_plugin() -> None:
    heard = Heard()
    made = with_nodes(advisor(Broken(), heard=heard), {"a": {}})
    made.warm_up()
    assert (made.state.placed_count, len(heard.errors)) == (0, 1)
    assert made.state.ledgers.booked_on("") is None


def test_until_everything_is_listed_it_says_what_is_not() -> None:
    made = advisor(FewestPods())
    assert made.unlisted == {"Pod", "Node"}
    made.step(Listed("Node"), 0.0)
    made.step(Listed("Pod"), 0.0)
    assert made.unlisted == frozenset()


def heard_of(made: Advisor, heard: Heard) -> list[tuple[Any, ...]]:
    """The verb, the node and how many were left of how many, of each answer."""
    return [
        (
            each.asked,
            each.decision.node_name,
            each.decision.feasible_count,
            each.decision.node_count,
        )
        for each in heard.answers
    ]


def test_answers_are_told_as_decisions() -> None:
    heard = Heard()
    made = advisor(FewestPods(), NodeLabel(NodeLabelArgs(label="disk")), heard=heard)
    with_nodes(made, {"a": LABELLED, "b": LABELLED, "c": {}, "d": LABELLED})
    made.step(Added(make_pod("other", on="a")), 0.0)
    web = make_pod("web")
    made.filter(Asked(web, ["a", "b", "c", "new"]), now=5.0, waited_seconds=2.0)
    assert heard.answers == []
    made.handed_out()
    made.prioritize(Asked(web, ["a", "b"]), now=6.0)
    made.handed_out()
    assert heard_of(made, heard) == [("filter", "b", 2, 4), ("prioritize", "b", 2, 2)]
    filtered, prioritized = heard.answers
    assert (filtered.first_seen_at, filtered.decision.pod) == (3.0, web)
    assert {each.node_name: each.total for each in prioritized.decision.best} == {"b": 100, "a": 0}
    assert filtered.priorities is None
    assert prioritized.priorities is not None
    assert prioritized.priorities.of_kept.tolist() == [10, 0]


@pytest.mark.parametrize(
    ("names", "highest", "count"),
    [
        pytest.param(["a", "b"], 10, 1, id="one is best"),
        pytest.param(["a", "b", "c"], 10, 2, id="two are equal"),
        pytest.param(["a", "new"], 0, 2, id="nodes that are not known have 0 too"),
    ],
)
def test_it_is_told_how_many_nodes_were_answered_the_most(
    names: list[str], highest: int, count: int
) -> None:
    heard = Heard()
    made = with_nodes(advisor(FewestPods(), heard=heard), {"a": {}, "b": {}, "c": {}})
    for number in range(2):
        made.step(Added(make_pod(f"other-{number}", on="a")), 0.0)
    made.prioritize(Asked(make_pod("web"), names), now=0.0)
    made.handed_out()
    priorities = heard.answers[0].priorities
    assert priorities is not None
    assert (priorities.highest, priorities.highest_count) == (highest, count)


def test_a_pod_that_is_rejected_everywhere_is_told_with_reasons_and_plugins() -> None:
    heard = Heard()
    made = with_nodes(
        advisor(NodeLabel(NodeLabelArgs(label="disk")), heard=heard), {"a": {}, "b": {}}
    )
    made.step(Added(make_node("c", labels=LABELLED)), 0.0)
    made.filter(Asked(make_pod("web"), ["a", "b", "new"]), now=0.0)
    made.handed_out()
    (answer,) = heard.answers
    assert heard_of(made, heard) == [("filter", None, 0, 3)]
    assert answer.decision.reason_counts == {LACKS: 2, UNKNOWN_NODE: 1}
    assert answer.decision.rejected_by == {"NodeLabel"}
    assert made.rejection_of(make_pod("web"), "a") is not None
    assert made.rejection_of(make_pod("web"), "c") is None


def test_the_ranks_that_are_kept_say_the_same_as_those_among_some_nodes() -> None:
    def points(*names: str) -> list[tuple[str, int]]:
        heard = Heard()
        made = with_nodes(advisor(FewestPods(), heard=heard), {"a": {}, "b": {}, "c": {}})
        made.step(Added(make_pod("other", on="a")), 0.0)
        made.prioritize(Asked(make_pod("web"), names), now=0.0)
        made.handed_out()
        return sorted((each.node_name, each.total) for each in heard.answers[0].decision.best)

    assert points("a", "b", "c") == [*points("a", "b"), ("c", 100)]


def test_who_looks_changes_nothing() -> None:
    plugin = NodeUsage(NodeUsageArgs(unit="millicores"))
    made = with_nodes(advisor(plugin, FewestPods()), {"a": {}, "b": {}})
    web = make_pod("web")
    made.step(Added(web), 0.0)
    made.filter(Asked(web, ["a", "b"]), now=1.0)
    booked_on = made.state.ledgers.booked_on(web.uid)
    assert booked_on is not None
    found = made.decided_now(web, 2.0)
    assert {each.node_name: each.total for each in found.best} == {"a": 100, "b": 100}
    assert made.state.ledgers.booked_on(web.uid) == booked_on
    assert made.queue.lengths() == {"active": 1, "unschedulable": 0, "gated": 0}
    assert (made.gate_of(web), made.binding_count) == (None, None)


def test_a_plugin_that_fails_for_who_looks_is_not_counted() -> None:
    heard = Heard()
    made = with_nodes(advisor(Broken(), heard=heard), {"a": {}})
    assert made.decided_now(make_pod("web"), 0.0).node_name == "a"
    assert made.rejection_of(make_pod("web"), "a") is None
    assert heard.errors == []


def test_a_pod_has_waited_since_it_was_created_for_who_looks_too() -> None:
    made = with_nodes(advisor(Hot()), {"a": {"hot": ""}})
    metadata = ObjectMeta(name="web", uid="1", creation_timestamp="1970-01-01T00:00:00Z")
    web = replace(make_pod("web"), metadata=metadata)
    made.step(Added(web), 100.0)  # by a process that has just started
    assert made.filter(Asked(web, ["a"]), now=100.0, waited_seconds=100.0).kept is None
    assert made.decided_now(web, 100.0).node_name == "a"


def test_where_a_pod_went_is_told_and_it_waits_no_more() -> None:
    heard = Heard()
    made = with_nodes(advisor(FewestPods(), heard=heard), {"a": {}})
    made.step(Added(make_pod("web")), 0.0)
    made.step(Modified(make_pod("web", on="a")), 1.0)
    made.step(Added(make_pod("gone")), 0.0)
    made.step(Deleted(make_pod("gone")), 1.0)
    assert (heard.placed, len(made.queue)) == ({"default/web": "a"}, 0)
