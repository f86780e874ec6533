"""A Permit plugin: the pods of a group are bound together, or none of them. Pods that have a node
wait there until the last pod of the group has one."""

import msgspec
import numpy as np

from lowtide.framework.plugin import (
    PODS,
    Allow,
    Change,
    LabelRequirement,
    Nodes,
    Pod,
    PodSelection,
    Reject,
    Wait,
)


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
        """`nodes` counts this pod, and those that wait or are bound."""
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
        """A pod that waited in vain is tried again when another pod of its group gives up: then
        there is a pod to wait for."""
        gone = change.before
        return (
            isinstance(gone, Pod)
            and gone.namespace == pod.namespace
            and self._group(gone) == self._group(pod)
        )

    def _group(self, pod: Pod) -> str:
        return pod.labels.get(self._args.group_label, "")

    def _members(self, pod: Pod, nodes: Nodes) -> frozenset[str]:
        """The uids of the group's pods that have a node."""
        group = LabelRequirement(self._args.group_label, "In", [self._group(pod)])
        selection = PodSelection.from_requirements(
            [group], namespaces=[pod.namespace], counts_terminating=False
        )
        held = np.flatnonzero(nodes.pods_matching(selection))
        pods = (each for position in held.tolist() for each in nodes.pods(position))
        return frozenset(each.uid for each in pods if selection.counts(each))
