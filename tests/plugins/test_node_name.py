"""NodeName: a pod that names its node fits on no other."""

import pytest

from lowtide.plugins.node_name import NodeName
from lowtide.testing import make_node, make_pod, make_state, rejections

REASON = "node(s) didn't match the requested node name"


@pytest.mark.parametrize(
    ("wanted", "rejected"),
    [
        pytest.param("", {}, id="accepts every node for a pod without a node name"),
        pytest.param("b", {"a": [REASON]}, id="accepts only the named node"),
        pytest.param(
            "c", {"a": [REASON], "b": [REASON]}, id="accepts no node if the named one is unknown"
        ),
    ],
)
def test_filter(wanted: str, rejected: dict[str, list[str]]) -> None:
    state = make_state([make_node("a"), make_node("b")])
    assert rejections(NodeName(), make_pod(on=wanted), state) == rejected
