"""What the stand-in for metrics-server says, well and wrong."""

import json
from typing import Any

import pytest

from faults.node_metrics import NONSENSE, well, wrong
from realparts.answering import Answer, Question
from realparts.metrics_server import NODES_PATH

NODES = len(NONSENSE)


def listed(answer: Answer) -> dict[str, Any]:
    """What is said of each node."""
    items = json.loads(answer(Question(NODES_PATH, b"")) or b"")["items"]
    return {item["metadata"]["name"]: item for item in items}


def test_every_node_has_another_usage() -> None:
    said = listed(well(3))
    assert {name: item["usage"]["cpu"] for name, item in said.items()} == {
        "node-0": "0m",
        "node-1": "1m",
        "node-2": "2m",
    }


def test_nonsense_is_no_json_then_no_list_then_untrue_of_every_node() -> None:
    answer = wrong(NODES)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            listed(answer)
        with pytest.raises(TypeError):
            listed(answer)
        said = listed(answer)
        assert list(said) == [
            *(f"node-{number}" for number in range(NODES)),
            *(f"ghost-{number}" for number in range(NODES)),
        ]
        assert [said[f"node-{number}"]["usage"] for number in range(4)] == [
            {"cpu": "12 parsecs", "memory": "3 apples"},
            {"cpu": "-5", "memory": "-1Gi"},
            {"cpu": "9E", "memory": "1e40"},
            {},
        ]


@pytest.mark.parametrize("made", [well, wrong])
def test_nothing_is_said_of_pods(made: Any) -> None:
    assert made(3)(Question("/apis/metrics.k8s.io/v1beta1/pods", b"")) is None
