"""Evicts pods by the API server, as kube-scheduler's preemption does: each victim is told why in
its status and then deleted. Called by KubeWrites for the machine's `Evict`."""

import asyncio
from collections.abc import Callable

from lowtide.framework.plugin import Pod
from lowtide.kube.errors import KubeError
from lowtide.kube.timestamps import second_time
from lowtide.kube.writer import Outcome, Writer, Written
from lowtide.logs import Log
from lowtide.objects.pod import PodCondition
from lowtide.plugins.default_preemption import BY_SCHEDULER, DISRUPTION_TARGET
from lowtide.scheduler.actions import Evict
from lowtide.scheduler.events import EvictionEnded

log = Log("scheduler")

# No such pod, or another one under its name: whether it is that, the pod itself tells.
_GONE = (Outcome.GONE, Outcome.CONFLICT)


class KubeEvictions:
    def __init__(self, writer: Writer, wall_clock: Callable[[], float]) -> None:
        self._writer = writer
        self._wall_clock = wall_clock

    async def evict(self, action: Evict) -> EvictionEnded:
        """The last victim goes only if all others do: else the room would not be enough anyway."""
        errors = await self._take_nominations_back(action)
        *others, last = action.victims
        done = await asyncio.gather(*(self._evict_one(victim, action) for victim in others))
        if all(_is_done(written) for written in done):
            done.append(await self._evict_one(last, action))
        errors += [
            f"pod {victim.key} was not evicted: {written.message}"
            for victim, written in zip(action.victims, done, strict=False)
            if not _is_done(written)
        ]
        ended = list(zip(action.victims, done, strict=False))
        return EvictionEnded(
            action.pod.uid,
            evicted=tuple(pod for pod, written in ended if written.outcome is Outcome.WRITTEN),
            gone=frozenset(pod.uid for pod, written in ended if written.outcome in _GONE),
            error="; ".join(errors) or None,
        )

    async def _take_nominations_back(self, action: Evict) -> list[str]:
        """Of pods that matter less: the sooner they look for another node the better. Whether their
        status was seen to say it or not: it may be written all the same."""
        done = await asyncio.gather(
            *(
                self._writer.patch_pod_status(
                    pod.namespace, pod.name, pod.uid, nominated_node_name=""
                )
                for pod in action.nominated
            )
        )
        return [
            f"the nomination of pod {pod.key} was not taken back: {written.message}"
            for pod, written in zip(action.nominated, done, strict=True)
            if not _is_done(written)
        ]

    async def _evict_one(self, victim: Pod, action: Evict) -> Written:
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=BY_SCHEDULER,
            message=(
                f"{action.pod.spec.scheduler_name}: preempting to accommodate a higher priority pod"
            ),
            observed_generation=victim.metadata.generation,
            last_transition_time=second_time(self._wall_clock()),
        )
        written = await self._writer.patch_pod_status(
            victim.namespace, victim.name, victim.uid, conditions=[condition]
        )
        if written.outcome is Outcome.WRITTEN:
            written = await self._writer.delete_pod(victim.namespace, victim.name, victim.uid)
        if written.outcome is Outcome.CONFLICT and await self._may_be_there(victim):
            written = Written(Outcome.REJECTED, written.message)
        about = {"preemptor": action.pod.key, "victim": victim.key, "node": action.node_name}
        if written.outcome is Outcome.WRITTEN:
            log.v(2, "Preemptor Pod preempted victim Pod", **about)
        elif written.outcome in _GONE:
            log.v(2, "Victim Pod is already deleted", **about)
        return written

    async def _may_be_there(self, victim: Pod) -> bool:
        try:
            found = await self._writer.get_pod(victim.namespace, victim.name)
        except KubeError:
            return True
        return found is not None and found.uid == victim.uid


def _is_done(written: Written) -> bool:
    return written.outcome is Outcome.WRITTEN or written.outcome in _GONE
