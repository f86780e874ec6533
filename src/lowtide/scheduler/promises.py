"""Promises: the nodes that pending pods are nominated to, in memory before they are written. Kept
in ClusterState, where `decide` counts them; used by the machine."""

from collections import deque

from msgspec.structs import replace

from lowtide.cluster.state import ClusterState
from lowtide.framework.change import promise_dropped
from lowtide.framework.decision import Decision
from lowtide.objects.pod import Pod, signature_of
from lowtide.scheduler.queue import Queue

_MOST_ASKED = 8  # of one pod; writes that fail are never seen


class Promises:
    def __init__(self, state: ClusterState, queue: Queue) -> None:
        self._state = state
        self._queue = queue
        # By uid: nominations to be written that the status was not seen to say yet, newest last.
        self._asked: dict[str, deque[str]] = {}

    def of(self, uid: str) -> str:
        return self._state.nomination_of(uid)

    def renew(self, pod: Pod, now: float) -> None:
        """The watch tells of the pod. Where its status says what it said before, or what was asked
        for here, what was promised since may not be written yet, and stands."""
        before, name = self._queue.pod(pod.uid), pod.status.nominated_node_name
        is_known = before is not None and before.status.nominated_node_name == name
        if is_known or self._is_echo(pod.uid, name):
            name = self.of(pod.uid)
        self.make(pod, name, now)

    def _is_echo(self, uid: str, node_name: str) -> bool:
        """Whether this was asked for; what was asked for earlier is not waited for any more."""
        asked = self._asked.get(uid)
        if asked is None or node_name not in asked:
            return False
        while asked.popleft() != node_name:
            pass
        if not asked:
            del self._asked[uid]
        return True

    def make(self, pod: Pod, node_name: str, now: float) -> None:
        """An empty name takes back what was promised. A pod that changes may leave more room."""
        before = self._promised(pod.uid)
        if self.of(pod.uid) != node_name or (before and signature_of(before) != signature_of(pod)):
            self.drop(pod.uid, now)
        if node_name:
            self._state.nominate(pod, node_name)

    def drop(self, uid: str, now: float) -> None:
        pod = self._promised(uid)
        if pod is not None:
            self._state.drop_nomination(uid)
            self._queue.wake(promise_dropped(pod), now)

    def take_back(self, uid: str, now: float) -> None:
        """For a pod that matters more; its eviction writes it."""
        self._ask(uid, "")
        self.drop(uid, now)

    def forget(self, uid: str, now: float) -> None:
        """The pod is bound or gone."""
        self._asked.pop(uid, None)
        self.drop(uid, now)

    def to_write(self, pod: Pod) -> str | None:
        """The nomination to ask for; None where the status says it, and nothing else was asked for
        since that may still be on its way."""
        promised, written = self.of(pod.uid), pod.status.nominated_node_name
        asked = self._asked.get(pod.uid)
        if promised == written and (asked is None or asked[-1] == promised):
            return None
        self._ask(pod.uid, promised)
        return promised

    def _ask(self, uid: str, node_name: str) -> None:
        asked = self._asked.setdefault(uid, deque(maxlen=_MOST_ASKED))
        if not asked or asked[-1] != node_name:
            asked.append(node_name)

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
