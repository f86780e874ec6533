"""What the scheduler writes to the cluster, done by the client of the API server."""

import asyncio
from collections.abc import Awaitable, Callable

from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.kube.errors import KubeError
from lowtide.kube.event_form import ObjectReference
from lowtide.kube.kube_events import KubeEvents
from lowtide.kube.timestamps import second_time
from lowtide.kube.writer import Outcome, Writer
from lowtide.logs import Log
from lowtide.objects.pod import PodCondition
from lowtide.scheduler.actions import WriteCondition, WriteKubeEvent

log = Log("scheduler")

_REREAD_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class KubeBinder:
    """Binds by the API server. Where the answer leaves a doubt, it reads the pod until it knows.

    Also after a 404: a proxy may have said so, and the pod would never be tried again."""

    def __init__(self, writer: Writer, sleep: Sleep = asyncio.sleep) -> None:
        self._writer = writer
        self._sleep = sleep

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        written = await self._writer.bind(pod.namespace, pod.name, pod.uid, node_name)
        match written.outcome:
            case Outcome.BOUND:
                return BindOutcome()
            case Outcome.UNKNOWN | Outcome.CONFLICT | Outcome.GONE:
                return await self._look(pod, node_name, written.message)
            case _:
                return BindOutcome(error=written.message)

    async def _look(self, pod: Pod, node_name: str, message: str) -> BindOutcome:
        waits = iter(_REREAD_SECONDS)
        while True:
            try:
                found = await self._writer.get_pod(pod.namespace, pod.name)
                break
            except KubeError as error:
                log.v(2, "The pod cannot be read after a binding", pod=pod.key, err=str(error))
                await self._sleep(next(waits, _REREAD_SECONDS[-1]))
        if found is None or found.uid != pod.uid:
            return BindOutcome(error=message, is_gone=True)
        if found.spec.node_name == node_name:
            return BindOutcome()
        return BindOutcome(error=message)


class KubeWrites:
    """Conditions and Events of the machine, written to the API server."""

    def __init__(self, writer: Writer, events: KubeEvents, clock: Clock) -> None:
        self._writer = writer
        self._events = events
        self._clock = clock

    async def write_condition(self, action: WriteCondition) -> None:
        pod = action.pod
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason=action.reason,
            message=action.message,
            observed_generation=pod.metadata.generation,
            last_transition_time=self._transition_time(pod),
        )
        written = await self._writer.patch_pod_status(
            pod.namespace, pod.name, pod.uid, conditions=[condition]
        )
        if written.outcome not in (Outcome.WRITTEN, Outcome.GONE):
            log.warning("The condition of a pod was not written", pod=pod.key, err=written.message)

    def write_event(self, action: WriteKubeEvent) -> None:
        pod = action.pod
        self._events.record(
            ObjectReference(
                kind="Pod",
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                api_version="v1",
                resource_version=pod.metadata.resource_version,
            ),
            scheduler_name=action.scheduler_name,
            type=action.type,
            reason=action.reason,
            action=action.action,
            note=action.note,
        )

    def _transition_time(self, pod: Pod) -> str:
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.last_transition_time or second_time(self._clock())
        return second_time(self._clock())
