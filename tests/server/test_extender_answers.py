"""Answers byte by byte, as Go spells the v1 types."""

from collections.abc import Mapping

import msgspec
import pytest

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.objects.extender import MetaPod, NodeList, NodeSeen, Victims
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.node_names import NodeNames
from lowtide.objects.pod import Pod
from lowtide.server.extender_answers import (
    binding_answer,
    error_answer,
    filter_answer,
    preemption_answer,
    priorities_answer,
)
from lowtide.server.extender_requests import NodesRequest, PreemptionRequest

NAMES = ["one", "two", "three"]
ITEMS = [f'{{"metadata": {{"name":"{name}"}},"kept":1.50}}' for name in NAMES]
BY_NAME = NodesRequest(Asked(Pod(), NAMES), None, is_by_name=True)
SEEN = [NodeSeen(metadata=ObjectMeta(name=name)) for name in NAMES]
NODES = NodeList(
    msgspec.Raw(b'{"resourceVersion":"7"}'), [msgspec.Raw(item.encode()) for item in ITEMS]
)
WHOLE = NodesRequest(Asked(Pod(), NAMES, SEEN), NODES, is_by_name=False)
BOTH = NodesRequest(WHOLE.asked, NODES, is_by_name=True)


def as_bytes() -> NodesRequest:
    """The same question, with the names as they came."""
    names = NodeNames.from_json(b'["one","two","three"]')
    assert names is not None
    return NodesRequest(Asked(Pod(), names), None, is_by_name=True)


@pytest.mark.parametrize("kept", [None, (), [0], [0, 2]], ids=str)
def test_names_as_they_came_are_answered_in_the_same_way(kept: list[int] | None) -> None:
    advice = FilterAdvice(kept, {"two": "busy"})
    assert filter_answer(as_bytes(), advice) == filter_answer(BY_NAME, advice)
    priorities = PriorityAdvice([0, 10, 7])
    assert priorities_answer(as_bytes(), priorities) == priorities_answer(BY_NAME, priorities)


@pytest.mark.parametrize(
    ("request_", "advice", "want"),
    [
        pytest.param(
            BY_NAME,
            FilterAdvice(None),
            '{"Nodes":null,"NodeNames":["one","two","three"],"FailedNodes":null,'
            '"FailedAndUnresolvableNodes":null,"Error":""}',
            id="keeps all names",
        ),
        pytest.param(
            BY_NAME,
            FilterAdvice([2], {"one": "too <busy>"}, {"two": 'no "rack"\n'}),
            '{"Nodes":null,"NodeNames":["three"],"FailedNodes":{"one":"too <busy>"},'
            '"FailedAndUnresolvableNodes":{"two":"no \\"rack\\"\\n"},"Error":""}',
            id="keeps one name and says why not the others",
        ),
        pytest.param(
            BY_NAME,
            FilterAdvice((), dict.fromkeys(NAMES, "busy")),
            '{"Nodes":null,"NodeNames":[],"FailedNodes":{"one":"busy","two":"busy","three":"busy"},'
            '"FailedAndUnresolvableNodes":null,"Error":""}',
            id="keeps nothing, and is no error",
        ),
        pytest.param(
            WHOLE,
            FilterAdvice(None),
            '{"Nodes":{"metadata":{"resourceVersion":"7"},"items":[' + ",".join(ITEMS) + "]},"
            '"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}',
            id="sends all nodes back as they came",
        ),
        pytest.param(
            WHOLE,
            FilterAdvice([0, 2], {"two": "busy"}),
            '{"Nodes":{"metadata":{"resourceVersion":"7"},"items":[' + f"{ITEMS[0]},{ITEMS[2]}]}},"
            '"NodeNames":null,"FailedNodes":{"two":"busy"},"FailedAndUnresolvableNodes":null,'
            '"Error":""}',
            id="sends the nodes back that are kept",
        ),
        pytest.param(
            WHOLE,
            FilterAdvice([], {}, dict.fromkeys(NAMES, "no rack")),
            '{"Nodes":{"metadata":{"resourceVersion":"7"},"items":[]},"NodeNames":null,'
            '"FailedNodes":null,"FailedAndUnresolvableNodes":{"one":"no rack","two":"no rack",'
            '"three":"no rack"},"Error":""}',
            id="sends no node back",
        ),
        pytest.param(
            BOTH,
            FilterAdvice([1]),
            '{"Nodes":{"metadata":{"resourceVersion":"7"},"items":[' + ITEMS[1] + "]},"
            '"NodeNames":["two"],"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}',
            id="has both forms where both were asked",
        ),
        pytest.param(
            WHOLE,
            FilterAdvice((), {"one": "busy"}, error="all nodes are busy"),
            '{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,'
            '"Error":"all nodes are busy"}',
            id="has an error and nothing else",
        ),
        pytest.param(
            NodesRequest(Asked(Pod(), [], []), NodeList(), is_by_name=False),
            FilterAdvice(()),
            '{"Nodes":{"metadata":{},"items":null},"NodeNames":null,"FailedNodes":null,'
            '"FailedAndUnresolvableNodes":null,"Error":""}',
            id="has no nodes where none were asked",
        ),
    ],
)
def test_an_answer_to_filter(request_: NodesRequest, advice: FilterAdvice, want: str) -> None:
    assert filter_answer(request_, advice).decode() == want


@pytest.mark.parametrize(
    ("request_", "priorities", "want"),
    [
        pytest.param(
            BY_NAME,
            [10, 0, 3],
            '[{"Host":"one","Score":10},{"Host":"two","Score":0},{"Host":"three","Score":3}]',
            id="is in the order that was asked",
        ),
        pytest.param(
            NodesRequest(Asked(Pod(), []), None, is_by_name=True), [], "[]", id="may be empty"
        ),
    ],
)
def test_an_answer_to_prioritize(request_: NodesRequest, priorities: list[int], want: str) -> None:
    assert priorities_answer(request_, PriorityAdvice(priorities)).decode() == want


@pytest.mark.parametrize(
    ("priorities", "problem"),
    [
        pytest.param([1, 2], "2 priorities for 3 nodes", id="too few"),
        pytest.param([1, 11, 2], "the priority 11; they go from 0 to 10", id="above ten"),
        pytest.param([1, -1, 2], "the priority -1; they go from 0 to 10", id="below zero"),
    ],
)
def test_priorities_that_may_not_be_sent(priorities: list[int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        priorities_answer(BY_NAME, PriorityAdvice(priorities))


@pytest.mark.parametrize(
    ("victims", "kept", "want"),
    [
        pytest.param(
            {
                "one": Victims([MetaPod("u-1"), MetaPod("u-2")], 2),
                "two": Victims([MetaPod("u-3")]),
            },
            {"one"},
            '{"NodeNameToMetaVictims":'
            '{"one":{"Pods":[{"UID":"u-1"},{"UID":"u-2"}],"NumPDBViolations":2}}}',
            id="leaves out what is not kept",
        ),
        pytest.param(
            {"one": Victims([MetaPod("u-1")])},
            set(),
            '{"NodeNameToMetaVictims":{}}',
            id="agrees to nothing",
        ),
    ],
)
def test_an_answer_to_preempt(
    victims: Mapping[str, Victims[MetaPod]], kept: set[str], want: str
) -> None:
    request = PreemptionRequest(AskedPreemption(Pod(), {}), victims)
    assert preemption_answer(request, PreemptionAdvice(frozenset(kept))).decode() == want


def test_an_answer_to_bind() -> None:
    assert binding_answer("") == b'{"Error":""}'
    assert binding_answer('no such "node"') == b'{"Error":"no such \\"node\\""}'


def test_an_answer_to_a_bad_request() -> None:
    assert error_answer("the body is empty") == b'{"error":"the body is empty"}'
