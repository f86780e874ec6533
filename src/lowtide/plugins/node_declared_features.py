"""NodeDeclaredFeatures: rejects nodes that do not declare a kubelet feature that the pod needs."""

from collections.abc import Iterator

from lowtide.framework.plugin import NODE, Change, Nodes, Pod, Rejection

_RESTART_ALL = "RestartAllContainersOnContainerExits"
_HOST_NETWORK_WITH_USER_NAMESPACE = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"
    retry_on = NODE

    def concerns(self, pod: Pod) -> bool:
        return bool(features_needed(pod))

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        needed = features_needed(pod)
        if not needed:
            return
        lacks = nodes.by_features(lambda declared: not needed <= declared)
        yield Rejection(lacks, "node(s) didn't match Pod's required features")

    def may_help(self, pod: Pod, change: Change) -> bool:
        needed = features_needed(pod)
        return change.is_of_taints or change.is_new(
            lambda node: needed.issubset(node.status.declared_features)
        )


def features_needed(pod: Pod) -> frozenset[str]:
    """The features that the pod needs and not every kubelet has."""
    needed = []
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if any(
        rule.action == "RestartAllContainers"
        for container in containers
        for rule in container.restart_policy_rules
    ):
        needed.append(_RESTART_ALL)
    if pod.spec.host_network and pod.spec.host_users is False:
        needed.append(_HOST_NETWORK_WITH_USER_NAMESPACE)
    return frozenset(needed)
