"""The verdicts of one profile: one per shape of pod that came more than once, bounded in bytes, and
none of a shape that was not asked about for long. `decide` asks for them."""

from collections import OrderedDict

from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod, bytes_in_memory, shape_of

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
_MOST_SEEN = 1024


class VerdictCache:
    def __init__(
        self, profile: Profile, state: ClusterState, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self.profile = profile
        self.state = state
        self._max_bytes = max_bytes
        self._by_shape: OrderedDict[bytes, Verdict] = OrderedDict()
        self._pod_bytes = 0
        # Most shapes that were never seen are never seen again. Only the last of those is kept: the
        # next one's arrays then are where its own were, in memory that is at hand.
        self._new: tuple[bytes, Verdict] | None = None
        self._seen: dict[int, None] = {}  # hashes of shapes, the newest last
        self._asked_last: tuple[str, object] = "", None
        self._last: Verdict | None = None  # may hold what its filters and scores share

    def without(self, uid: str) -> "VerdictCache":
        """Others, as if this pod was on no node, for a question: these stay as they are, and so
        does a decision that goes by them and waits for an extender."""
        return VerdictCache(self.profile.aside, self.state.without(uid))

    def verdict_on(self, pod: Pod) -> Verdict:
        """The verdict on this pod's shape, true for the state as it is now."""
        shape = shape_of(pod)
        verdict = self._known(shape, pod.uid)
        if verdict is not self._last and self._last is not None:
            self._last.drop_shared()
            self._last = None
        self._last = verdict = verdict or self._made(shape, pod)
        self._asked_last = pod.uid, verdict.shape
        try:
            verdict.refresh()
        finally:  # after that: of a table that has grown, each takes more than before
            self._drop_oldest(but=verdict)
        return verdict

    def shape_of_last(self, uid: str) -> object | None:
        """What the verdict knows its pods by that was asked for last; None where that was about
        another pod."""
        asked_last, shape = self._asked_last
        return shape if asked_last == uid else None

    def _known(self, shape: bytes, uid: str) -> Verdict | None:
        verdict = self._by_shape.get(shape)
        if verdict is not None:
            self._by_shape.move_to_end(shape)
        elif self._new is not None and self._new[0] == shape:
            verdict = self._new[1]
            if self._asked_last[0] != uid:  # so the shape has come again
                self._new = None
                self._keep(shape, verdict)
        return verdict

    def _made(self, shape: bytes, pod: Pod) -> Verdict:
        self._new = None  # before the next one is made
        verdict = Verdict(self.profile, self.state, pod)
        if hash(shape) in self._seen:
            return self._keep(shape, verdict)
        self._seen[hash(shape)] = None
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._new = shape, verdict
        return verdict

    def _keep(self, shape: bytes, verdict: Verdict) -> Verdict:
        self._by_shape[shape] = verdict
        self._pod_bytes += bytes_in_memory(verdict.pod)
        return verdict

    def _drop_oldest(self, but: Verdict) -> None:
        while self._by_shape:
            oldest = next(iter(self._by_shape.values()))
            if oldest is but or not (oldest.is_outdated or self._bytes() > self._max_bytes):
                return
            self._by_shape.popitem(last=False)
            self._pod_bytes -= bytes_in_memory(oldest.pod)

    def _bytes(self) -> int:
        # Verdicts of one table are about equally large: the newest stands for all.
        newest = next(reversed(self._by_shape.values()))
        arrays = newest.bytes_when_full * len(self._by_shape)
        return arrays + self._pod_bytes
