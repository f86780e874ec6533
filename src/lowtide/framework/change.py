"""A Change: something happened that parked pods may profit from. The machine makes one where it
wakes them; plugins are asked about it by `may_help`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lowtide.cluster.changes import (
    FIRST_KIND,
    LABELS,
    NEW_NODE,
    NODE,
    NODES,
    OBJECTS,
    OTHERS,
    PODS,
    READING,
    ROW,
    TERMS,
    of_any_row,
)
from lowtide.cluster.placed import PlacedPod
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Change:
    """A node, a pod on a node or promised one, or another object, `before` and `after`: None where
    it was not there, or is no more. Of a reading, both are None. Pods stay on their nodes."""

    what: int  # NODE | PODS | ...: plugins that read none of it are not asked
    event: str = "Update"  # in kube-scheduler's words, for the metric
    before: Any = None
    after: Any = None
    is_of_taints: bool = False  # the taints of a node that stays, or it is no longer cordoned
    highest_priority: int | None = None  # nobody above it can profit; None: anybody can

    @property
    def thing(self) -> Any:
        return self.before if self.after is None else self.after

    @property
    def is_relabelled(self) -> bool:
        """Of a node that stays: whether its labels changed, or its taints, about which every plugin
        is asked."""
        return self.is_of_taints or bool(self.before.labels != self.after.labels)

    def is_new(self, meets: Callable[[Any], bool]) -> bool:
        """Whether it is met now, and was not before."""
        is_met = self.after is not None and meets(self.after)
        return is_met and not (self.before is not None and meets(self.before))

    def is_over(self, met: Callable[[Any], bool]) -> bool:
        """Whether it was met before, and is no more."""
        was_met = self.before is not None and met(self.before)
        return was_met and not (self.after is not None and met(self.after))


def wakes_on(touched: int) -> int:
    """The changes after which an answer that touched this may be another. A node that comes is new
    to every plugin."""
    of_all = of_any_row(touched)
    occasions = NEW_NODE | touched & (FIRST_KIND - 1) | of_all & READING
    if of_all & (READING | TERMS) or touched & LABELS:
        occasions |= OTHERS  # a pod that comes may be the one that is missing
    return occasions | (OBJECTS if touched & -FIRST_KIND else 0)


READING_PUBLISHED = Change(READING, "ReadingPublished")


def node_change(before: Node | None, after: Node | None) -> Change:
    if after is None:
        return Change(NODES | OTHERS, "NodeDelete", before)
    if before is None:
        # A row that comes is new to every plugin, whatever it reads.
        return Change(NEW_NODE | ROW | NODES | OTHERS, "NodeAdd", None, after)
    is_of_taints = before.spec.taints != after.spec.taints or (
        before.spec.unschedulable and not after.spec.unschedulable
    )
    # Every plugin is asked about taints, as in kube-scheduler.
    what = ROW if is_of_taints else NODE
    event = f"NodeUpdate{_changed_of_node(before, after, is_of_taints)}"
    return Change(what | NODES | OTHERS, event, before, after, is_of_taints)


def pod_change(before: Pod | None, after: Pod | None) -> Change:
    """Of pods on nodes."""
    if after is None:
        return Change(PODS | OTHERS | READING, "AssignedPodDelete", before)
    if before is None:
        return Change(OTHERS, "AssignedPodAdd", None, after)
    # It may have shrunk, and so have made room.
    has_same_labels = before.labels == after.labels
    event = "AssignedPodUpdate" if has_same_labels else "AssignedPodUpdatePodLabel"
    return Change(PODS | OTHERS | READING, event, before, after)


def changes_by_binding(before: PlacedPod | None, after: PlacedPod) -> Iterator[Change]:
    """A watch tells of a pod on a node, which may have been there before, or assumed."""
    if before is not None and before.node_name != after.node_name:
        yield pod_change(before.pod, None)
        before = None
    if before is None or before.is_assumed:
        yield pod_change(None, after.pod)
    if before is not None and not before.is_same_to_plugins(after):
        yield pod_change(before.pod, after.pod)


def promise_dropped(pod: Pod) -> Change:
    """A pod is no longer nominated to a node; it stood only in the way of who matters no more."""
    what, priority = PODS | READING, pod.spec.priority
    return Change(what, "AssignedPodDelete", pod, highest_priority=priority)


def object_change(before: Any, after: Any) -> Change:
    """Of an object of another kind."""
    if after is None:
        return Change(OBJECTS, f"{type(before).__name__}Delete", before)
    action = "Add" if before is None else "Update"
    return Change(OBJECTS, f"{type(after).__name__}{action}", before, after)


def _changed_of_node(before: Node, after: Node, is_of_taints: bool) -> str:
    """What kube-scheduler calls it; where several things changed, the first it looks for."""
    if is_of_taints:
        return "NodeTaint"
    if before.status.allocatable != after.status.allocatable:
        return "NodeAllocatable"
    if before.labels != after.labels:
        return "NodeLabel"
    if before.metadata.annotations != after.metadata.annotations:
        return "NodeAnnotation"
    if before.status.declared_features != after.status.declared_features:
        return "NodeDeclaredFeature"
    return ""
