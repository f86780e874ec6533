"""NodeDeclaredFeatures: what a pod needs of the kubelet, and nodes that do not declare it."""

from typing import Any

import pytest

from lowtide.plugins.node_declared_features import NodeDeclaredFeatures
from lowtide.testing import make_node, make_pod, make_state, rejections

RESTARTS = "RestartAllContainersOnContainerExits"
NAMESPACES = "UserNamespacesHostNetworkSupport"


def restarting(action: str) -> list[dict[str, Any]]:
    return [{"name": "c"}, {"name": "d", "restartPolicyRules": [{"action": action}]}]


@pytest.mark.parametrize(
    ("spec", "rejected"),
    [
        pytest.param({}, set(), id="accepts any node for a plain pod"),
        pytest.param(
            {"containers": restarting("RestartAllContainers")},
            {"none", "namespaces"},
            id="requires the feature to restart all containers",
        ),
        pytest.param(
            {"initContainers": restarting("RestartAllContainers")},
            {"none", "namespaces"},
            id="requires it for the restart rule of an init container",
        ),
        pytest.param(
            {"containers": restarting("Restart")}, set(), id="requires nothing for another action"
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            {"none", "restarts"},
            id="requires the feature for user namespaces with host network",
        ),
        pytest.param({"hostNetwork": True}, set(), id="requires nothing for host network alone"),
        pytest.param({"hostUsers": False}, set(), id="requires nothing for user namespaces alone"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": True},
            set(),
            id="requires nothing for host network with host users",
        ),
        pytest.param(
            {
                "hostNetwork": True,
                "hostUsers": False,
                "containers": restarting("RestartAllContainers"),
            },
            {"none", "restarts", "namespaces"},
            id="requires both features together",
        ),
    ],
)
def test_filter(spec: dict[str, Any], rejected: set[str]) -> None:
    nodes = [
        make_node("none"),
        make_node("restarts", declared_features=["Another", RESTARTS]),
        make_node("namespaces", declared_features=[NAMESPACES]),
        make_node("both", declared_features=[NAMESPACES, RESTARTS]),
    ]
    found = rejections(NodeDeclaredFeatures(), make_pod(spec=spec), make_state(nodes))
    assert found == {name: ["node(s) didn't match Pod's required features"] for name in rejected}


def test_no_eviction_helps() -> None:
    pod = make_pod(spec={"containers": restarting("RestartAllContainers")})
    found = NodeDeclaredFeatures().filter(pod, make_state([make_node()]).nodes())
    assert [each.eviction_helps for each in found] == [False]
