"""The verdicts of one profile: one per shape of pod, bounded in bytes, and none of a shape that was
not asked about for long. `decide` asks for them."""

from collections import OrderedDict

from lowtide.cluster.state import ClusterState
from lowtide.framework.profile import Profile
from lowtide.framework.verdict import Verdict
from lowtide.objects.pod import Pod, shape_of

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
# A shape is kept as a key, and its pod as decoded, which takes some times as much.
_BYTES_PER_BYTE_OF_SHAPE = 5


class Verdicts:
    def __init__(
        self, profile: Profile, state: ClusterState, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self.profile = profile
        self.state = state
        self._max_bytes = max_bytes
        self._by_shape: OrderedDict[bytes, Verdict] = OrderedDict()
        self._shape_bytes = 0
        self._asked_last: tuple[str, object] = "", None

    def of(self, pod: Pod) -> Verdict:
        """The verdict on this pod's shape, true for the state as it is now."""
        shape = shape_of(pod)
        verdict = self._by_shape.get(shape)
        if verdict is None:
            verdict = self._by_shape[shape] = Verdict(self.profile, self.state, pod)
            self._shape_bytes += len(shape)
        else:
            self._by_shape.move_to_end(shape)
        self._asked_last = pod.uid, verdict.shape
        try:
            verdict.refresh()
        finally:  # after that: of a table that has grown, each takes more than before
            self._drop_oldest()
        return verdict

    def shape_of_last(self, uid: str) -> object | None:
        """What the verdict knows its pods by that was asked for last; None where that was about
        another pod."""
        asked_last, shape = self._asked_last
        return shape if asked_last == uid else None

    def object_changed(self, kind: type) -> None:
        """An object of this type changed: every row is stale for the rules that depend on it."""
        for verdict in self._by_shape.values():
            verdict.object_changed(kind)

    def _drop_oldest(self) -> None:
        while len(self._by_shape) > 1 and self._oldest_may_go():
            shape, _ = self._by_shape.popitem(last=False)
            self._shape_bytes -= len(shape)

    def _oldest_may_go(self) -> bool:
        oldest = next(iter(self._by_shape.values()))
        return oldest.is_outdated or self._bytes() > self._max_bytes

    def _bytes(self) -> int:
        # Verdicts of one table are about equally large: the newest stands for all.
        newest = next(reversed(self._by_shape.values()))
        arrays = newest.bytes_when_full * len(self._by_shape)
        return arrays + _BYTES_PER_BYTE_OF_SHAPE * self._shape_bytes
