"""A Change: an event in the cluster after which unschedulable pods may be tried again.

The machine makes one for each event; plugins are asked about it by `may_help`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lowtide.cluster.changes import (
    FIRST_KIND,
    NODE,
    NODES,
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

# Bits that cluster/changes.py leaves free, and that are never logged for a row.
OBJECTS = 64  # objects other than nodes and pods
NEW_NODE = 128  # a node was added


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: a node, a pod that is on a node or nominated to one, another object, or a
    reading."""

    what: int  # NODE | PODS | ...: plugins whose `retry_on` has none of it are not asked
    event: str = "Update"  # kube-scheduler's name of the event, for the metric
    before: Any = None  # None: it is new, or a reading
    after: Any = None  # None: it is gone, or a reading
    is_of_taints: bool = False  # a node's taints changed, or it is no longer cordoned
    highest_priority: int | None = None  # helps no pod of a higher priority; None: any pod

    @property
    def thing(self) -> Any:
        return self.before if self.after is None else self.after

    @property
    def is_relabelled(self) -> bool:
        """Whether the labels or taints of a node changed that existed before and still does."""
        return self.is_of_taints or bool(self.before.labels != self.after.labels)

    def is_new(self, meets: Callable[[Any], bool]) -> bool:
        """Whether the object meets a condition now that it did not meet before."""
        is_met = self.after is not None and meets(self.after)
        return is_met and not (self.before is not None and meets(self.before))

    def is_over(self, met: Callable[[Any], bool]) -> bool:
        """Whether the object met a condition before that it does not meet now."""
        was_met = self.before is not None and met(self.before)
        return was_met and not (self.after is not None and met(self.after))


def wakes_on(touched: int) -> int:
    """The changes that can alter an answer which read these bits. A new node alters every one."""
    of_all = of_any_row(touched)
    occasions = NEW_NODE | touched & (FIRST_KIND - 1) | of_all & READING
    if of_all & (READING | TERMS) or touched & PODS:
        occasions |= OTHERS  # a new pod may be the one that was missing
    return occasions | (OBJECTS if touched & -FIRST_KIND else 0)


READING_PUBLISHED = Change(READING, "ReadingPublished")


def node_change(before: Node | None, after: Node | None) -> Change:
    if after is None:
        return Change(NODES | OTHERS, "NodeDelete", before)
    if before is None:
        # A new node can be accepted by any plugin, whatever it reads.
        return Change(NEW_NODE | ROW | NODES | OTHERS, "NodeAdd", None, after)
    is_of_taints = before.spec.taints != after.spec.taints or (
        before.spec.unschedulable and not after.spec.unschedulable
    )
    # Every plugin is asked about taints, as in kube-scheduler.
    what = ROW if is_of_taints else NODE
    event = f"NodeUpdate{_changed_of_node(before, after, is_of_taints)}"
    return Change(what | NODES | OTHERS, event, before, after, is_of_taints)


def pod_change(before: Pod | None, after: Pod | None) -> Change:
    """A change of a pod on a node."""
    if after is None:
        return Change(PODS | OTHERS | READING, "AssignedPodDelete", before)
    if before is None:
        return Change(OTHERS, "AssignedPodAdd", None, after)
    # Its requests may have shrunk.
    has_same_labels = before.labels == after.labels
    event = "AssignedPodUpdate" if has_same_labels else "AssignedPodUpdatePodLabel"
    return Change(PODS | OTHERS | READING, event, before, after)


def changes_by_binding(before: PlacedPod | None, after: PlacedPod) -> Iterator[Change]:
    """The changes when the watch delivers a pod on a node. `before` is the pod as it was known,
    perhaps only assumed there."""
    if before is not None and before.node_name != after.node_name:
        yield pod_change(before.pod, None)
        before = None
    if before is None or before.is_assumed:
        yield pod_change(None, after.pod)
    if before is not None and not before.is_same_to_plugins(after):
        yield pod_change(before.pod, after.pod)


def nomination_dropped(pod: Pod) -> Change:
    """A pod is no longer nominated to a node. This helps only pods of its priority or lower."""
    what, priority = PODS | READING, pod.spec.priority
    return Change(what, "AssignedPodDelete", pod, highest_priority=priority)


def object_change(before: Any, after: Any) -> Change:
    """A change of an object that is neither a node nor a pod."""
    if after is None:
        return Change(OBJECTS, f"{type(before).__name__}Delete", before)
    action = "Add" if before is None else "Update"
    return Change(OBJECTS, f"{type(after).__name__}{action}", before, after)


def _changed_of_node(before: Node, after: Node, is_of_taints: bool) -> str:
    """The end of kube-scheduler's event name. If several things changed, the first one counts."""
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
