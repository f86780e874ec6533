"""Promises: the nodes that pending pods are nominated to, in memory before they are written. Kept
in ClusterState, where `decide` counts them; used by the machine."""

from msgspec.structs import replace

from lowtide.cluster.state import ClusterState
from lowtide.framework.change import promise_dropped
from lowtide.framework.decision import Decision
from lowtide.objects.pod import Pod, shape_of
from lowtide.scheduler.queue import Queue


class Promises:
    def __init__(self, state: ClusterState, queue: Queue) -> None:
        self._state = state
        self._queue = queue

    def of(self, uid: str) -> str:
        return self._state.nomination_of(uid)

    def renew(self, pod: Pod, now: float) -> None:
        """The watch tells of the pod. Where its status says what it said before, what was promised
        since is not written yet, and stands."""
        before, name = self._queue.pod(pod.uid), pod.status.nominated_node_name
        if before is not None and before.status.nominated_node_name == name:
            name = self.of(pod.uid)
        self.make(pod, name, now)

    def make(self, pod: Pod, node_name: str, now: float) -> None:
        """An empty name takes back what was promised. A pod that changes may leave more room."""
        before = self._promised(pod.uid)
        if self.of(pod.uid) != node_name or (before and shape_of(before) != shape_of(pod)):
            self.drop(pod.uid, now)
        if node_name:
            self._state.nominate(pod, node_name)

    def drop(self, uid: str, now: float) -> None:
        pod = self._promised(uid)
        if pod is not None:
            self._state.drop_nomination(uid)
            self._queue.wake(promise_dropped(pod), now)

    def _promised(self, uid: str) -> Pod | None:
        """The pod as it was when it was promised its node."""
        return self._state.nominated().get(self.of(uid), {}).get(uid)

    def after(self, decision: Decision) -> str:
        """The node that a pod is promised which got none: as the rules say that were asked what
        can be done. Where they were not, as when its node was refused after all, none."""
        found = decision.post_filtered
        if found is None:
            return ""
        if found.nominated_node_name is None:
            return self.of(decision.pod.uid)
        return found.nominated_node_name

    def applied_to(self, pod: Pod) -> Pod:
        """With the node promised to it, whether that is written to its status yet or not."""
        promised = self.of(pod.uid)
        if promised == pod.status.nominated_node_name:
            return pod
        return replace(pod, status=replace(pod.status, nominated_node_name=promised))
