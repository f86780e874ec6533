"""NodeUnschedulable: a cordoned node takes only pods that tolerate it."""

import pytest

from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_state, rejections

KEY = "node.kubernetes.io/unschedulable"
REJECTED = {"cordoned": ["node(s) were unschedulable"]}


@pytest.mark.parametrize(
    ("tolerations", "rejected"),
    [
        pytest.param([], REJECTED, id="rejects a cordoned node"),
        pytest.param(
            [{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}],
            {},
            id="accepts a cordoned node for a pod that tolerates it",
        ),
        pytest.param(
            [{"operator": "Exists"}],
            {},
            id="accepts a cordoned node for a pod that tolerates everything",
        ),
        pytest.param(
            [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
            REJECTED,
            id="rejects a cordoned node for a pod that tolerates another effect",
        ),
    ],
)
def test_filter(tolerations: list[dict[str, str]], rejected: dict[str, list[str]]) -> None:
    state = make_state([make_node("free"), make_node("cordoned", unschedulable=True)])
    assert rejections(NodeUnschedulable(), make_pod(tolerations=tolerations), state) == rejected
