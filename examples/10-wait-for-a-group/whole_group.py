"""A Permit plugin: the pods of a group are bound together, or none of them. Those that have a node
wait there until the last one has."""

import msgspec
import numpy as np

from lowtide.cluster.pod_selection import PodSelection
from lowtide.framework.plugin import PODS, Allow, Change, Nodes, Pod, Reject, Wait
from lowtide.objects.meta import LabelRequirement


class WholeGroupArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    group_label: str = "example.com/group"
    size_label: str = "example.com/group-size"
    wait_seconds: float = 600.0


class WholeGroup:
    name = "WholeGroup"
    args = WholeGroupArgs
    retry_on = PODS

    def __init__(self, args: WholeGroupArgs) -> None:
        self._args = args

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Reject | Wait:
        """The pod counts on its node already, and so do those that wait or are bound."""
        if not self._group(pod):
            return Allow()
        size = pod.labels.get(self._args.size_label, "")
        if not size.isdecimal():
            return Reject(f"the label {self._args.size_label} must be a number, not {size!r}")
        placed = self._members(pod, nodes)
        if len(placed) < int(size):
            return Wait(self._args.wait_seconds)
        return Allow(also=placed)

    def may_help(self, pod: Pod, change: Change) -> bool:
        """Whoever waited in vain tries again when another one of the group has given up: then
        there is somebody to wait for."""
        gone = change.before
        return (
            isinstance(gone, Pod)
            and gone.namespace == pod.namespace
            and self._group(gone) == self._group(pod)
        )

    def _group(self, pod: Pod) -> str:
        return pod.labels.get(self._args.group_label, "")

    def _members(self, pod: Pod, nodes: Nodes) -> frozenset[str]:
        """The uids of all that have a node. Only nodes that hold some are looked into."""
        group = LabelRequirement(self._args.group_label, "In", [self._group(pod)])
        selection = PodSelection.from_requirements(
            [group], namespaces=[pod.namespace], counts_terminating=False
        )
        held = np.flatnonzero(nodes.pods_matching(selection))
        pods = (each for position in held.tolist() for each in nodes.pods(position))
        return frozenset(each.uid for each in pods if selection.counts(each))
