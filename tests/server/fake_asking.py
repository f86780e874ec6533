"""Who is asked behind the extender's routes, for tests: answers what it was told to."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
)
from lowtide.objects.pod import Pod
from lowtide.server.extender import Asking, extender_routes
from lowtide.server.health import health_routes
from lowtide.server.http import Server


@dataclass
class FakeAsking:
    """Rejects nodes by name, gives the third node 2 points, and so on; remembers questions."""

    rejected: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    error: str = ""
    bind_error: str = ""
    failure: Exception | None = None
    not_ready: str | None = None
    hung: bool = False
    questions: list[object] = field(default_factory=list)

    async def filter(self, asked: Asked) -> FilterAdvice:
        self._hear(asked)
        out = {*self.rejected, *self.unresolvable}
        kept = [at for at, name in enumerate(asked.names) if name not in out]
        every = len(kept) == len(asked.names)
        return FilterAdvice(
            None if every else kept,
            {name: self.rejected[name] for name in asked.names if name in self.rejected},
            {name: self.unresolvable[name] for name in asked.names if name in self.unresolvable},
            self.error,
        )

    async def prioritize(self, asked: Asked) -> PriorityAdvice:
        self._hear(asked)
        return PriorityAdvice([at % 11 for at in range(len(asked.names))])

    async def preempt(self, asked: AskedPreemption) -> PreemptionAdvice:
        self._hear(asked)
        return PreemptionAdvice(frozenset(asked.victims) - {*self.rejected})

    async def bind(self, pod: Pod, node_name: str) -> str:
        self._hear((pod, node_name))
        return self.bind_error

    def why_not_ready(self) -> str | None:
        return self.not_ready

    def is_hung(self) -> bool:
        return self.hung

    def _hear(self, question: object) -> None:
        self.questions.append(question)
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeMetrics:
    observed: list[tuple[str, str]] = field(default_factory=list)
    neutral: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def observe(self, verb: str, status: str, seconds: float) -> None:
        assert seconds >= 0
        self.observed.append((verb, status))

    def neutral_answer(self, verb: str, reason: str) -> None:
        self.neutral.append((verb, reason))

    def rejected(self, reason: str) -> None:
        self.reasons.append(reason)


@asynccontextmanager
async def served(
    asking: Asking,
    metrics: FakeMetrics,
    *,
    most_body_bytes: int = 1024 * 1024,
    prefix: str = "/scheduler",
    serves_bind: bool = True,
) -> AsyncIterator[str]:
    """The URL of a server with the extender's routes."""
    routes = extender_routes(
        asking,
        metrics=metrics,
        clock=time.monotonic,
        most_body_bytes=most_body_bytes,
        prefix=prefix,
        serves_bind=serves_bind,
    )
    routes += health_routes(healthz=[], livez=[], readyz=[])
    server = Server(routes, port=0, on_rejected=metrics.rejected)
    await server.start()
    try:
        yield server.address.url
    finally:
        await server.stop()
