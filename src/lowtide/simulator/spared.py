"""Pods that were evicted when they were recorded and live on here, and the pods that their owners
made in their place then: these do not come, as what they stand for is still there. Kept by `rerun`.
"""

from collections import defaultdict, deque

from lowtide.objects.pod import Pod
from lowtide.plugins.default_preemption import BY_SCHEDULER, DISRUPTION_TARGET


def is_preempted(pod: Pod) -> bool:
    """Whether a scheduler has evicted it, or is about to."""
    return any(
        each.type == DISRUPTION_TARGET and each.status == "True" and each.reason == BY_SCHEDULER
        for each in pod.status.conditions
    )


def owner_of(pod: Pod) -> str:
    """The uid of who makes another pod when this one is gone; empty where nobody does."""
    return "" if pod.controller is None else pod.controller.uid


class Spared:
    def __init__(self) -> None:
        self._pods: dict[str, str] = {}  # by uid: the owner's
        self._unreplaced = defaultdict[str, deque[str]](deque)  # by owner, in their order
        self._stands_for: dict[str, str] = {}  # by the uid of a replacement
        self._replacement: dict[str, str] = {}  # by the uid of the pod that lives on

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def add(self, pod: Pod) -> None:
        owner = owner_of(pod)
        self._pods[pod.uid] = owner
        if owner:
            self._unreplaced[owner].append(pod.uid)

    def replaced_by(self, pod: Pod) -> bool:
        """Whether this newcomer stands for a pod that lives on. Of pods of one owner it does not
        matter which one."""
        waiting = self._unreplaced.get(owner_of(pod))
        if not waiting:
            return False
        uid = waiting.popleft()
        self._stands_for[pod.uid], self._replacement[uid] = uid, pod.uid
        return True

    def stands_for(self, uid: str) -> str | None:
        return self._stands_for.get(uid)

    def forget(self, uid: str) -> str | None:
        """It lives on no longer; the replacement that was kept back for it."""
        owner = self._pods.pop(uid, "")
        if uid in self._unreplaced.get(owner, ()):
            self._unreplaced[owner].remove(uid)
        replacement = self._replacement.pop(uid, None)
        if replacement is not None:
            del self._stands_for[replacement]
        return replacement
