"""Carries the questions of a decision to the extenders, and brings the answers back; binds too.

App makes one where a configuration names extenders."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Protocol, Self

import msgspec

from lowtide.config.types import Extender
from lowtide.extenders.client import ExtenderCallError, ExtenderClient
from lowtide.framework.plugin import BindOutcome, Eviction
from lowtide.logs import Log
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import (
    Answer,
    AskFilter,
    AskPreemption,
    AskPriorities,
    ExtenderFailed,
    Priorities,
    Question,
    is_interested,
)

log = Log("extenders")

_NOTHING = msgspec.Raw(b"null")

# What became of a binding that an extender leaves a doubt about: pod, node, what went wrong.
LookUp = Callable[[Pod, str, str], Awaitable[BindOutcome]]


class WholeObjects(Protocol):
    """Objects as the API server spells them, every field."""

    async def pod(self, pod: Pod) -> msgspec.Raw | None:
        """None where it cannot be read now."""

    def node(self, name: str) -> msgspec.Raw | None:
        """None where it has gone meanwhile."""


class Extenders:
    """`bind` makes it a plugin at that extension point, before the others."""

    def __init__(
        self,
        extenders: tuple[Extender, ...],
        objects: WholeObjects,
        *,
        objection: Callable[[Pod], str | None] = lambda pod: None,
        bind_connect_seconds: float | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        """`objection` is asked before a binding is sent: why it must not be. What it says is only
        as fresh as the connection is quick to come about: `bind_connect_seconds` at most."""
        self._clients = {
            extender: ExtenderClient(extender, bind_connect_seconds) for extender in extenders
        }
        self._objects = objects
        self._objection = objection
        self._look_up = look_up
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for client in self._clients.values():
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def rejected(self) -> int:
        """How many answers were rejected for their size, since the start."""
        return sum(client.intake.rejected for client in self._clients.values())

    async def answer(self, question: Question) -> Answer:
        try:
            match question:
                case AskFilter(extender, pod, node_names):
                    nodes = self._nodes(extender, node_names)
                    return await self._clients[extender].filter(await self._whole(pod), nodes)
                case AskPreemption(extender, pod, evictions):
                    victims = {} if extender.node_cache_capable else await self._victims(evictions)
                    client = self._clients[extender]
                    return await client.preempt(await self._whole(pod), evictions, victims)
                case AskPriorities():
                    return await self._priorities(question)
        except ExtenderCallError as error:
            return ExtenderFailed(str(error))

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome | None:
        """By the extender that binds, if there is one and the pod is its business."""
        for extender, client in self._clients.items():
            if not extender.bind_verb or not is_interested(extender, pod):
                continue
            objection = self._objection(pod)
            if objection is not None:
                return BindOutcome(error=objection)
            try:
                await client.bind(pod, node_name)
            except ExtenderCallError as error:
                if extender.ignorable:
                    log.warning("Skipping an extender in bind", pod=pod.key, err=str(error))
                    return None
                # It may have bound the pod all the same.
                if self._look_up is not None:
                    return await self._look_up(pod, node_name, str(error))
                return BindOutcome(error=str(error))
            return BindOutcome()
        return None

    async def _priorities(self, question: AskPriorities) -> Priorities:
        """All at once; one that fails has no opinion."""
        pod = await self._whole(question.pod)

        async def of_one(extender: Extender) -> Mapping[str, int]:
            try:
                nodes = self._nodes(extender, question.node_names)
                return await self._clients[extender].priorities(pod, nodes)
            except ExtenderCallError as error:
                log.v(
                    5,
                    "An extender gave no priorities",
                    extender=extender.url_prefix,
                    err=str(error),
                )
                return {}

        return Priorities(tuple(await asyncio.gather(*map(of_one, question.extenders))))

    async def _victims(self, evictions: tuple[Eviction, ...]) -> dict[str, msgspec.Raw]:
        """All of them, by uid; one that has gone meanwhile is left out."""
        pods = {victim.uid: victim for eviction in evictions for victim in eviction.victims}
        whole = await asyncio.gather(*map(self._objects.pod, pods.values()))
        return {uid: raw for uid, raw in zip(pods, whole, strict=True) if raw is not None}

    async def _whole(self, pod: Pod) -> msgspec.Raw:
        whole = await self._objects.pod(pod)
        if whole is None:
            raise ExtenderCallError(f"the pod {pod.key} cannot be read for the extender")
        return whole

    def _nodes(self, extender: Extender, names: tuple[str, ...]) -> dict[str, msgspec.Raw]:
        if extender.node_cache_capable:
            return dict.fromkeys(names, _NOTHING)  # it knows them by their names
        found = {name: self._objects.node(name) for name in names}
        return {name: whole for name, whole in found.items() if whole is not None}
