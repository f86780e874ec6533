"""The plugin is tested at its limit, and against a twin that judges one node at a time."""

import random

import pytest
from spare_memory import SpareMemory, SpareMemoryArgs

from lowtide.framework.plugin import OneNode, Pod, filter_each
from lowtide.objects.requests import pod_requests
from lowtide.testing import check_plugin, make_node, make_pod, make_state, place, rejections

REASON = "node(s) had too little spare memory"


@pytest.mark.parametrize(
    ("memory", "want"),
    [
        pytest.param("7Gi", {}, id="accepts a node with exactly enough left"),
        pytest.param("7341Mi", {"node": [REASON]}, id="rejects one with too little left"),
    ],
)
def test_the_plugin(memory: str, want: dict[str, list[str]]) -> None:
    plugin = SpareMemory(SpareMemoryArgs(percent=10))
    state = make_state([make_node(memory="10Gi")], [make_pod("old", on="node", memory="2Gi")])
    assert rejections(plugin, make_pod(memory=memory), state) == want  # 10 - 2 - 7 = 1 Gi is 10 %


def test_a_pod_goes_where_memory_is_left() -> None:
    nodes = [make_node("tight", memory="8Gi"), make_node("roomy", memory="64Gi")]
    decision = place([SpareMemory(SpareMemoryArgs(percent=50))], make_pod(memory="5Gi"), nodes)
    assert decision.node_name == "roomy"
    assert decision.rejections["tight"].reasons == (REASON,)


class OneByOne:
    """What the plugin says, in the plainest words."""

    name = "OneByOne"

    @filter_each
    def filter(self, pod: Pod, node: OneNode) -> str | None:
        asked = node.requested("memory") + pod_requests(pod).get("memory", 0)
        left = node.allocatable("memory") - asked
        return REASON if left * 100 < node.allocatable("memory") * 10 else None


def test_it_says_what_its_twin_says() -> None:
    draw = random.Random(1)
    nodes = [make_node(f"n{number}", memory=draw.randrange(1, 64)) for number in range(200)]
    pods = [
        make_pod(f"p{number}", on=f"n{draw.randrange(200)}", memory=draw.randrange(8))
        for number in range(400)
    ]
    state, pod = make_state(nodes, pods), make_pod(memory=9)
    found = rejections(SpareMemory(SpareMemoryArgs()), pod, state)
    assert found == rejections(OneByOne(), pod, state)
    assert 0 < len(found) < 200


def test_its_answers_may_be_kept() -> None:
    check_plugin(SpareMemory(SpareMemoryArgs()))
