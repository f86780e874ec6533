"""What plugins are asked about a pod that fits nowhere, and what becomes of their answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import (
    Eviction,
    Nodes,
    PluginError,
    Pod,
    PodRejection,
    PostFilterContext,
    PostFiltered,
    Rejection,
    filter_each,
)
from lowtide.objects.kinds import Namespace
from lowtide.testing import make_node, make_pod, place

VICTIM = make_pod("victim", on="a")
EVICTION = Eviction("a", (VICTIM,), 0)
EVERY_POD = PodSelection.from_requirements(
    labels_required({}), namespaces=None, counts_terminating=True
)
NOTHING = PostFiltered("nothing to be done")


class Full:
    name = "Full"

    @filter_each(eviction_helps=True)
    def filter(self, pod: Pod, node: Any) -> str | None:
        return "full"


@dataclass
class Answers:
    """Keeps what it was asked."""

    name: str
    answer: Any = NOTHING
    asked: int = 0

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> Any:
        self.asked += 1
        return self.answer


def decided(*plugins: Any, **more: Any) -> Decision:
    return place([Full(), *plugins], make_pod(**more), [make_node("a"), make_node("b")])


def test_without_such_a_plugin_nothing_is_added() -> None:
    decision = decided()
    assert decision.post_filtered is None
    assert decision.fit_error_final == decision.fit_error == "0/2 nodes are available: 2 full."


def test_what_they_say_is_joined_to_the_sentence() -> None:
    decision = decided(
        Answers("One", PostFiltered("no luck")), Answers("Two", PostFiltered("none"))
    )
    assert decision.fit_error_final == "0/2 nodes are available: 2 full. no luck, none"
    assert (decision.post_filtered, decision.post_filtered_by) == (
        PostFiltered("no luck, none"),
        "One",
    )


def test_the_last_word_on_a_nomination_counts() -> None:
    plugins = [
        Answers("One", PostFiltered("x", nominated_node_name="")),
        Answers("Two", PostFiltered("y")),
    ]
    assert decided(*plugins).post_filtered == PostFiltered("x, y", nominated_node_name="")


@pytest.mark.parametrize(
    ("answer", "by"),
    [
        pytest.param(
            PostFiltered(eviction=EVICTION, nominated_node_name="a"), "", id="finds an eviction"
        ),
        pytest.param(PostFiltered("not found", is_error=True), "Two", id="returns an error"),
    ],
)
def test_nobody_else_is_asked_when_a_plugin(answer: PostFiltered, by: str) -> None:
    last = Answers("Three")
    decision = decided(Answers("One", PostFiltered("no luck")), Answers("Two", answer), last)
    assert (decision.post_filtered, decision.post_filtered_by, last.asked) == (answer, by, 0)


def test_nobody_is_asked_where_there_are_no_nodes() -> None:
    plugin = Answers("One")
    decision = place([Full(), plugin], make_pod(), [])
    assert (decision.post_filtered, plugin.asked) == (None, 0)


def test_another_answer_is_a_bug_of_the_plugin() -> None:
    with pytest.raises(
        PluginError, match=r"^One\.post_filter returned 'hm'; it must be a PostFiltered$"
    ):
        decided(Answers("One", "hm"))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(PostFiltered(eviction=("a", ())), id="a tuple as the eviction"),  # type: ignore[arg-type]
        pytest.param(
            PostFiltered(eviction=Eviction("a", ("low",), 0)),  # type: ignore[arg-type]
            id="a name as a victim",
        ),
        pytest.param(
            PostFiltered(eviction=Eviction("a", None, 0)),  # type: ignore[arg-type]
            id="no victims",
        ),
        pytest.param(
            PostFiltered(eviction=Eviction(None, (make_pod(),), 0)),  # type: ignore[arg-type]
            id="no node",
        ),
        pytest.param(
            PostFiltered(eviction=EVICTION, candidates=("a",)),  # type: ignore[arg-type]
            id="a name as a candidate",
        ),
        pytest.param(
            PostFiltered(eviction=EVICTION, candidates=None),  # type: ignore[arg-type]
            id="no candidates",
        ),
        pytest.param(PostFiltered(nominated_node_name=5), id="a number as a node"),  # type: ignore[arg-type]
        pytest.param(PostFiltered(5), id="a number as the reason"),  # type: ignore[arg-type]
    ],
)
def test_an_answer_of_other_types_is_a_bug_of_the_plugin(answer: PostFiltered) -> None:
    with pytest.raises(
        PluginError, match=r"^One\.post_filter returned PostFiltered\(.*; it must be a"
    ):
        decided(Answers("One", answer))


class PreFilters:
    def __init__(self, name: str, answer: PodRejection | None = None) -> None:
        self.name = name
        self._answer = answer

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        return self._answer


class WasReached:
    name = "WasReached"

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> PostFiltered:
        names = ("First", "Second", "Third", "Fourth")
        return PostFiltered(" ".join(name for name in names if rejected.was_reached(name)))


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(None, "First Second Third", id="all, if none rejects the pod"),
        pytest.param(
            PodRejection("later", eviction_helps=True),
            "First Second Third",
            id="all, if eviction may help against the rejection",
        ),
        pytest.param(
            PodRejection("no"),
            "First Second",
            id="those up to the rejecting one, if eviction cannot help",
        ),
    ],
)
def test_of_the_plugins_before_the_filters_were_reached(
    answer: PodRejection | None, want: str
) -> None:
    plugins = [PreFilters("First"), PreFilters("Second", answer), PreFilters("Third")]
    found = decided(*plugins, WasReached()).post_filtered
    assert found is not None
    assert found.reason == want


Read = Callable[[Nodes], object]


class Counting:
    """Reads something, and counts how often it is asked."""

    kinds = (Namespace,)

    def __init__(self, name: str, read: Read) -> None:
        self.name = name
        self._read = read
        self.asked = 0

    def filter(self, pod: Pod, nodes: Nodes) -> list[Rejection]:
        self.asked += 1
        self._read(nodes)
        return [Rejection(np.array([name == "b" for name in nodes.names]), self.name)]


class InThought:
    name = "InThought"

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> PostFiltered:
        face = nodes.take(np.array([1, 0])).without({1: ["default/victim"]})
        on = rejected.on(face)
        return PostFiltered(" ".join(f"{at}:{on[at].plugin}" for at in sorted(on)))


@pytest.mark.parametrize(
    ("read", "times"),
    [
        pytest.param(lambda nodes: None, 1, id="reads nothing is not asked again"),
        pytest.param(lambda nodes: nodes.unschedulable, 1, id="reads nodes is not asked again"),
        pytest.param(
            lambda nodes: nodes.everything.unschedulable, 1, id="reads all nodes is not asked again"
        ),
        pytest.param(
            lambda nodes: nodes.objects(Namespace), 1, id="reads objects is not asked again"
        ),
        pytest.param(
            lambda nodes: nodes.pod_count, 2, id="reads what pods take of a node is asked again"
        ),
        pytest.param(
            lambda nodes: nodes.pods_matching(EVERY_POD),
            2,
            id="reads labels of pods is asked again",
        ),
        pytest.param(
            lambda nodes: nodes.reading("x"), 2, id="reads a node's reading is asked again"
        ),
        pytest.param(
            lambda nodes: nodes.everything.pod_count,
            2,
            id="reads the pods of other nodes is asked again",
        ),
        pytest.param(
            lambda nodes: nodes.everything.reading("x"),
            2,
            id="reads the readings of other nodes is asked again",
        ),
        pytest.param(
            lambda nodes: list(nodes.terms_about(VICTIM)),
            2,
            id="reads affinity terms of pods is asked again",
        ),
    ],
)
def test_hypothetically_a_plugin_that(read: Read, times: int) -> None:
    plugin = Counting("Counting", read)
    found = decided(plugin, InThought()).post_filtered
    assert found is not None
    # `Full` is asked first, and rejects both nodes hypothetically too.
    assert (found.reason, plugin.asked) == ("0:Full 1:Full", times)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda nodes: nodes.unschedulable, id="nodes"),
        pytest.param(lambda nodes: nodes.pod_count, id="pods"),
    ],
)
def test_hypothetically_the_first_plugin_that_rejects_a_node_is_reported(read: Read) -> None:
    plugins = [Counting("First", read), Full(), InThought()]
    found = place(plugins, make_pod(), [make_node("a"), make_node("b")]).post_filtered
    assert found is not None
    assert found.reason == "0:First 1:Full"
