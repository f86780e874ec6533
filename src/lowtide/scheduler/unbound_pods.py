"""Pods that another scheduler has to place, as the watch shows them. The advisor and the shadow
keep them where the machine has its queue."""

from collections.abc import Iterator
from dataclasses import dataclass

from lowtide.objects.pod import Pod
from lowtide.objects.times import epoch_seconds


@dataclass(frozen=True, slots=True)
class UnboundPod:
    """It waits since its creation, even if this process saw it only later."""

    pod: Pod
    first_seen_at: float

    @property
    def is_rejected(self) -> bool:
        return self.pod.is_rejected


class UnboundPods:
    def __init__(self) -> None:
        self._by_uid: dict[str, UnboundPod] = {}

    def __iter__(self) -> Iterator[UnboundPod]:
        return iter(self._by_uid.values())

    def __len__(self) -> int:
        return len(self._by_uid)

    def keep(self, pod: Pod, now: float) -> None:
        created_at = epoch_seconds(pod.metadata.creation_timestamp or "")
        before = self._by_uid.get(pod.uid)
        seen_at = now if before is None else before.first_seen_at
        self._by_uid[pod.uid] = UnboundPod(
            pod, seen_at if created_at is None else min(seen_at, created_at)
        )

    def drop(self, uid: str) -> UnboundPod | None:
        """Remove and return a pod that has a node or is gone."""
        return self._by_uid.pop(uid, None)

    def waited_seconds(self, uid: str, now: float) -> float:
        """0 for a pod that does not wait."""
        pending = self._by_uid.get(uid)
        return 0.0 if pending is None else now - pending.first_seen_at

    def lengths(self) -> dict[str, int]:
        """By the names of the machine's queue. Which pods are in backoff is unknown."""
        gated = sum(bool(each.pod.spec.scheduling_gates) for each in self)
        rejected = sum(each.is_rejected and not each.pod.spec.scheduling_gates for each in self)
        return {"active": len(self) - gated - rejected, "unschedulable": rejected, "gated": gated}
