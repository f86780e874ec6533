"""The PreBind, Bind and PostBind plugins of one binding, called in order and timed. Run by live in
the binding's task."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from lowtide.framework.plugin import BindOutcome, Pod
from lowtide.logs import Log
from lowtide.scheduler.actions import Bind
from lowtide.scheduler.metrics import SchedulerMetrics
from lowtide.scheduler.pods import memory_of

T = TypeVar("T")

log = Log("scheduler")


class BindingExtenders(Protocol):
    async def bind(self, pod: Pod, node_name: str) -> BindOutcome | None:
        """None if no extender binds this pod, so that the plugins do."""


class Hooks:
    def __init__(
        self,
        metrics: SchedulerMetrics,
        clock: Callable[[], float],
        extenders: BindingExtenders | None,
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._extenders = extenders

    async def prepare(self, bind: Bind) -> str | None:
        """Run the PreBind plugins. Return why the pod cannot be bound; None if it can."""
        if not bind.profile.plugins_for_point("preBind"):
            return None
        return await self._timed("PreBind", bind, _pre_bind(bind), lambda problem: problem is None)

    async def bind(self, bind: Bind) -> BindOutcome:
        """Bind by the extender that binds this pod, or else by the first plugin that does."""
        answer = None
        if self._extenders is not None:
            answer = await self._extenders.bind(bind.pod, bind.node_name)
        if answer is None:
            answer = await self._timed(
                "Bind", bind, _bind(bind), lambda outcome: outcome.error is None
            )
        if answer.error is None and bind.profile.plugins_for_point("postBind"):
            await self._timed("PostBind", bind, _post_bind(bind), lambda _: True)
        return answer

    async def _timed(
        self, point: str, bind: Bind, work: Awaitable[T], is_good: Callable[[T], bool]
    ) -> T:
        """A call that is cancelled when the process ends is not counted."""
        name, began_at = bind.profile.scheduler_name, self._clock()
        try:
            answer = await work
        except Exception:
            self._metrics.hooks_ran(name, point, self._clock() - began_at, is_good=False)
            raise
        self._metrics.hooks_ran(name, point, self._clock() - began_at, is_good=is_good(answer))
        return answer


async def _pre_bind(bind: Bind) -> str | None:
    for plugin in bind.profile.plugins_for_point("preBind"):
        problem = await plugin.pre_bind(
            bind.pod, bind.node_name, **memory_of(bind.memories, plugin)
        )
        if problem is not None:
            return f'running PreBind plugin "{plugin.name}": {problem}'
    return None


async def _bind(bind: Bind) -> BindOutcome:
    for plugin in bind.profile.plugins_for_point("bind"):
        answer: BindOutcome | None = await plugin.bind(
            bind.pod, bind.node_name, **memory_of(bind.memories, plugin)
        )
        if answer is not None:
            return answer
    return BindOutcome(error="no plugin binds pods in this profile")


async def _post_bind(bind: Bind) -> None:
    """Only log errors: the pod is bound already."""
    for plugin in bind.profile.plugins_for_point("postBind"):
        try:
            await plugin.post_bind(bind.pod, bind.node_name, **memory_of(bind.memories, plugin))
        except Exception:
            log.exception("A PostBind plugin failed", pod=bind.pod.key, plugin=plugin.name)
