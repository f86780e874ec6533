"""The nodes that pending pods are nominated to, in memory before they are written to the status.
ClusterState keeps them and `decide` respects them; the machine sets and drops them here."""

from collections.abc import Callable

from msgspec.structs import replace

from lowtide.cluster.state import ClusterState
from lowtide.framework.change import Change, nomination_dropped
from lowtide.framework.decision import Decision
from lowtide.objects.pod import Pod, signature_of
from lowtide.scheduler.pods import PendingPod, Pods

_MOST_ASKED = 8  # per pod; a write that fails never shows in the status


class Nominations:
    def __init__(
        self, state: ClusterState, pods: Pods, wake: Callable[[Change, float], object]
    ) -> None:
        self._state = state
        self._pods = pods
        self._wake = wake

    def pod_added(self, pod: Pod, now: float) -> None:
        """A pod that was not pending before is nominated to the node in its status."""
        name = pod.status.nominated_node_name
        if name or self._state.nomination_of(pod.uid):
            self._nominate(pod, name, now)

    def pod_changed(self, record: PendingPod, pod: Pod, now: float) -> None:
        """Take a changed nomination from the status. If the status did not change, or only echoes
        a write of ours, keep the one in memory: a newer write may still be on its way."""
        name = pod.status.nominated_node_name
        is_known = record.pod.status.nominated_node_name == name
        if is_known or _is_echo(record, name):
            name = self._state.nomination_of(record.uid)
        self._nominate(pod, name, now)

    def decided(self, decision: Decision, record: PendingPod, now: float) -> None:
        """The pod got no node. A postFilter answer sets or keeps its nomination. Without an answer,
        as after a rejection in Reserve or Permit, the pod loses it."""
        found, name = decision.post_filtered, ""
        if found is not None:
            name = found.nominated_node_name or ""
            if found.nominated_node_name is None:
                name = self._state.nomination_of(record.uid)
        self._nominate(record.pod, name, now)

    def drop(self, uid: str, now: float) -> None:
        node_name = self._state.nomination_of(uid)
        if node_name:
            pod = self._state.nominated()[node_name][uid]
            self._state.drop_nomination(uid)
            self._wake(nomination_dropped(pod), now)

    def take_back(self, uid: str, now: float) -> None:
        """Remove the nomination for a pod of higher priority, whose action `Evict` writes that."""
        record = self._pods.by_uid.get(uid)
        if record is not None:
            _ask(record, "")
        self.drop(uid, now)

    def to_write(self, record: PendingPod) -> str | None:
        """The nomination to write; None if the status shows it already and no other write of ours
        may still be on its way."""
        name, asked = self._state.nomination_of(record.uid), record.asked_nominations
        if name == record.pod.status.nominated_node_name and (not asked or asked[-1] == name):
            return None
        _ask(record, name)
        return name

    def applied_to(self, pod: Pod) -> Pod:
        """The pod with its nomination in the status, even if that is not written yet."""
        name = self._state.nomination_of(pod.uid)
        if name == pod.status.nominated_node_name:
            return pod
        return replace(pod, status=replace(pod.status, nominated_node_name=name))

    def _nominate(self, pod: Pod, node_name: str, now: float) -> None:
        """An empty name removes the nomination. A changed pod is nominated anew: what it leaves
        free may help others."""
        before = self._state.nomination_of(pod.uid)
        if before:
            nominated = self._state.nominated()[before][pod.uid]
            if before != node_name or signature_of(nominated) != signature_of(pod):
                self.drop(pod.uid, now)
        if node_name:
            self._state.nominate(pod, node_name)


def _ask(record: PendingPod, node_name: str) -> None:
    asked = record.asked_nominations
    if asked[-1:] != (node_name,):
        record.asked_nominations = (*asked, node_name)[-_MOST_ASKED:]


def _is_echo(record: PendingPod, node_name: str) -> bool:
    """Whether we asked to write this. If so, earlier writes are not expected any more."""
    asked = record.asked_nominations
    if node_name not in asked:
        return False
    record.asked_nominations = asked[asked.index(node_name) + 1 :]
    return True
