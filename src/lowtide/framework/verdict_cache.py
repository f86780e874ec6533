"""VerdictCache: the verdicts of one profile, for pod signatures that came more than once.

It is bounded in bytes and drops the least recently used verdict first. Called by `decide`."""

from collections import OrderedDict

from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import UNTIMED, Asking
from lowtide.framework.decision import NodeRejection
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod, bytes_in_memory, signature_of

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
_MOST_SEEN = 1024


class VerdictCache:
    def __init__(
        self, profile: Profile, state: ClusterState, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self.profile = profile
        self.state = state
        self._max_bytes = max_bytes
        self._by_signature: OrderedDict[bytes, Verdict] = OrderedDict()
        self._pod_bytes = 0
        # The verdict of a signature that came once. Most such signatures never come again, so only
        # the latest is kept; the next one then reuses its memory.
        self._new: Verdict | None = None
        self._seen: dict[int, None] = {}  # hashes of signatures, newest last
        self._last: Verdict | None = None  # may still hold what its filters and scores share
        self._last_uid = ""

    def without(self, uid: str) -> "VerdictCache":
        """A new cache for the state without this pod, for a hypothetical question. This cache does
        not change, so a decision that waits for an extender can still use it."""
        return VerdictCache(self.profile, self.state.without(uid), self._max_bytes)

    def verdict_on(
        self, pod: Pod, asking: Asking = UNTIMED, signature: bytes | None = None
    ) -> Verdict:
        """The verdict on this pod's signature, refreshed for the current state. Pass the signature
        if you know it."""
        if signature is None:
            signature = signature_of(pod)
        verdict = self._by_signature.get(signature)
        if verdict is None:
            verdict = self._rare(signature, pod)
        else:
            self._by_signature.move_to_end(signature)
        if verdict is not self._last:
            self._leave_last()
            self._last = verdict
        self._last_uid = pod.uid
        try:
            verdict.refresh(asking)
        finally:  # after the refresh, which makes the verdict larger if the table has grown
            self._drop_oldest(but=verdict)
        return verdict

    def rejection_on(self, pod: Pod, node_name: str) -> NodeRejection | None:
        """Why this node would reject a pending pod; None if it would not, or is unknown."""
        row = self.state.row_of(node_name)
        if row is None:
            return None
        verdict = self.verdict_on(pod)
        if verdict.pod_rejection is None:
            return verdict.rejection_at(row)
        plugin_name, rejection = verdict.pod_rejection
        return NodeRejection(plugin_name, (rejection.reason,), rejection.eviction_helps)

    def _rare(self, signature: bytes, pod: Pod) -> Verdict:
        """A verdict for a signature that came at most once before."""
        new = self._new
        if new is not None and new.signature == signature:
            if self._last_uid == pod.uid:
                return new  # it is the same pod: the signature has not come again
            self._new = None
            return self._keep(new)
        del new
        self._new = None  # frees its memory for the next verdict
        self._leave_last()
        verdict = Verdict(self.profile, self.state, pod, signature)
        if hash(signature) in self._seen:
            return self._keep(verdict)
        self._seen[hash(signature)] = None
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._new = verdict
        return verdict

    def _leave_last(self) -> None:
        if self._last is not None:
            self._last.drop_shared()
            self._last = None

    def _keep(self, verdict: Verdict) -> Verdict:
        self._by_signature[verdict.signature] = verdict
        self._pod_bytes += bytes_in_memory(verdict.pod)
        return verdict

    def _drop_oldest(self, but: Verdict) -> None:
        while self._by_signature:
            oldest = next(iter(self._by_signature.values()))
            if oldest is but or not (oldest.is_outdated or self._bytes() > self._max_bytes):
                return
            self._by_signature.popitem(last=False)
            self._pod_bytes -= bytes_in_memory(oldest.pod)

    def _bytes(self) -> int:
        # All verdicts on one table are about equally large, so the newest stands for all.
        newest = next(reversed(self._by_signature.values()))
        arrays = newest.bytes_when_full * len(self._by_signature)
        return arrays + self._pod_bytes
