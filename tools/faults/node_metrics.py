"""What a metrics-server says of the nodes of the arena, and nonsense in its place.

Told by the stand-in of measuring_faults."""

import datetime
import itertools
import json
from collections.abc import Sequence
from typing import Any

from realparts.answering import Answer, Question
from realparts.metrics_server import GROUP_VERSION, NODES_PATH

BROKEN_JSON = b'{"kind":"NodeMetricsList","items":[{"metadata":{"name":"node-'
OTHER_JSON = b'{"kind":"NodeMetricsList","items":{"node-0":[1,2],"node-1":null}}'
# Of one node each: units that are none, less than nothing, more than there is in the world, no
# usage, and times that cannot be.
NONSENSE: Sequence[dict[str, Any]] = (
    {"usage": {"cpu": "12 parsecs", "memory": "3 apples"}},
    {"usage": {"cpu": "-5", "memory": "-1Gi"}},
    {"usage": {"cpu": "9E", "memory": "1e40"}},
    {"usage": {}},
    {"timestamp": "yesterday", "window": "-1h"},
    {"timestamp": "9999-12-31T23:59:59Z", "window": "2562047h"},
)

# By it the API server knows whether somebody is there.
DISCOVERY_PATH = f"/apis/{GROUP_VERSION}"
DISCOVERY = json.dumps(
    {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP_VERSION,
        "resources": [
            {
                "name": "nodes",
                "singularName": "",
                "namespaced": False,
                "kind": "NodeMetrics",
                "verbs": ["get", "list"],
            }
        ],
    }
).encode()


def well(nodes: int) -> Answer:
    def answer(question: Question) -> bytes | None:
        if question.path != NODES_PATH:
            return None
        return _listed([_node_metrics(f"node-{number}", number) for number in range(nodes)])

    return answer


def wrong(nodes: int) -> Answer:
    """One kind of nonsense after the other: no JSON, no list, and a list of which nothing is true,
    with as many nodes again that there are not."""
    turns = itertools.cycle((BROKEN_JSON, OTHER_JSON, None))

    def answer(question: Question) -> bytes | None:
        if question.path != NODES_PATH:
            return None
        return next(turns) or _listed(_nonsense(nodes))

    return answer


def _nonsense(nodes: int) -> list[dict[str, Any]]:
    those_there_are = [
        _node_metrics(f"node-{number}", number) | NONSENSE[number % len(NONSENSE)]
        for number in range(nodes)
    ]
    return those_there_are + [_node_metrics(f"ghost-{number}", 0) for number in range(nodes)]


def _node_metrics(name: str, cpu_milli: int) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC)
    return {
        "metadata": {"name": name},
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": "10s",
        "usage": {"cpu": f"{cpu_milli}m", "memory": "1Gi"},
    }


def _listed(items: list[dict[str, Any]]) -> bytes:
    listed = {"kind": "NodeMetricsList", "apiVersion": GROUP_VERSION, "items": items}
    return json.dumps({**listed, "metadata": {}}).encode()
