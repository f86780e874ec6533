"""The routes of the extender: what other schedulers ask of Lowtide by kube-scheduler's v1 API.

App hands in who answers. A request that cannot be used gets 400 and the reason; a problem of
ours gets a neutral answer, so that the other scheduler goes on without us."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from aiohttp import web

from lowtide.advisor.advice import (
    Asked,
    AskedPreemption,
    FilterAdvice,
    PreemptionAdvice,
    PriorityAdvice,
    neutral_filter,
    neutral_preemption,
    neutral_priorities,
)
from lowtide.advisor.advising import FAILED
from lowtide.logs import Log
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.server.bad_request import BadRequestError
from lowtide.server.bodies import (
    BodyBudget,
    BodyError,
    BodyShare,
    body_response,
    read_body,
    write_response,
)
from lowtide.server.extender_answers import (
    binding_answer,
    error_answer,
    filter_answer,
    preemption_answer,
    priorities_answer,
)
from lowtide.server.extender_requests import (
    Body,
    NodesRequest,
    binding_request,
    nodes_request,
    preemption_request,
    quick_nodes_request,
    read_names,
)
from lowtide.server.http import part_after
from lowtide.server.name_lists import NameLists

_LOG = Log(__name__)
# kube-scheduler tells its users no more than the status: the reason has to be in our log, but
# not with every pod that it tries to place.
_TOLD_AGAIN_SECONDS: Final = 10.0

_BIND_IS_OFF: Final = (
    "this extender does not bind pods: leave bindVerb out of kube-scheduler's configuration, or "
    "set bind: true in the pluginConfig entry Extender of a profile of Lowtide's"
)

T = TypeVar("T")


class Asking(Protocol):
    """Who answers. QuantityError where an amount in the question cannot be read."""

    async def filter(self, asked: Asked) -> FilterAdvice: ...

    async def prioritize(self, asked: Asked) -> PriorityAdvice: ...

    async def preempt(self, asked: AskedPreemption) -> PreemptionAdvice: ...

    async def bind(self, pod: Pod, node_name: str) -> str:
        """What went wrong; empty where the pod is bound."""

    def why_not_ready(self) -> str | None: ...

    def is_hung(self) -> bool:
        """Whoever asks had better ask another replica."""


class Metrics(Protocol):
    """What /metrics is to show."""

    def observe(self, verb: str, status: str, seconds: float) -> None: ...

    def neutral_answer(self, verb: str, reason: str) -> None: ...

    def rejected(self, reason: str) -> None: ...


def extender_routes(
    asking: Asking,
    *,
    metrics: Metrics,
    clock: Callable[[], float],
    most_body_bytes: int,
    prefix: str,
    serves_bind: bool,
) -> list[web.RouteDef]:
    """`clock` never jumps. `most_body_bytes` is for each body, and for all of them at once. The
    prefix may be empty: then the verbs stand at the root. Any other path that nobody else serves
    is told which are right: a prefix is easily forgotten."""
    root = f"/{prefix.strip('/')}".rstrip("/")
    answering = _Answering(asking, metrics)
    verbs: dict[str, Verb] = {
        "filter": answering.filter,
        "prioritize": answering.prioritize,
        "preempt": answering.preempt,
    }
    if serves_bind:
        verbs["bind"] = answering.bind
    paths = {**{f"{root}/{name}": name for name in verbs}, f"{root}/preemption": "preempt"}
    handling = _Handling(asking, metrics, clock, most_body_bytes)

    def route(path: str, name: str) -> web.RouteDef:
        async def handle(request: web.Request) -> web.Response:
            return await handling.handle(request, name, verbs[name])

        return web.route("*", path, handle)

    async def unknown(request: web.Request) -> web.Response:
        if request.path == f"{root}/bind":
            return handling.reject("bind", 404, "no-bind", _BIND_IS_OFF)
        metrics.rejected("path")
        known = ", ".join(paths)
        return _rejection(404, f"{request.path} is no path of this extender; expected {known}")

    # Whatever else is served goes before it; of "/" alone the routes have to be added before.
    elsewhere = web.route("*", "/{path:.*}", unknown)
    return [*(route(path, name) for path, name in paths.items()), elsewhere]


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    pod: Pod
    nodes: int
    outcome: str


Verb = Callable[[Body], Awaitable[_Answer]]


class _Handling:
    """One request, from its body to the status of its answer."""

    def __init__(
        self, asking: Asking, metrics: Metrics, clock: Callable[[], float], most_body_bytes: int
    ) -> None:
        self._asking = asking
        self._metrics = metrics
        self._clock = clock
        self._budget = BodyBudget(most_body_bytes)
        self._reported_at: float | None = None

    async def handle(self, request: web.Request, name: str, verb: Verb) -> web.Response:
        if request.method != "POST":
            self._metrics.rejected("method")
            return _rejection(
                405,
                f"{request.path} is asked by POST, not by {request.method}",
                headers={"Allow": "POST"},
            )
        begun = self._clock()
        with self._budget.share() as share:
            try:
                response = await self._response(request, share, name, verb)
            except Exception as failure:
                _LOG.exception("A request has met a bug", verb=name)
                problem = f"{type(failure).__name__}: {failure}"
                response = _rejection(503, f"Lowtide has a problem with this request: {problem}")
            self._metrics.observe(name, str(response.status), self._clock() - begun)
            await write_response(request, response)
        return response

    async def _response(
        self, request: web.Request, share: BodyShare, name: str, verb: Verb
    ) -> web.Response:
        begun = self._clock()
        unready = self._asking.why_not_ready()
        if unready is not None:
            return self.reject(name, 503, "not-ready", f"Lowtide cannot answer yet: {unready}")
        try:
            answer = await verb(await read_body(request, self._budget.most_bytes, share))
        except (BodyError, BadRequestError) as error:
            return self.reject(name, error.status, error.reason, str(error))
        share.become(len(answer.body))
        _LOG.v(
            4,
            "Answered",
            verb=name,
            pod=answer.pod.key,
            nodes=answer.nodes,
            outcome=answer.outcome,
            seconds=round(self._clock() - begun, 6),
        )
        response = body_response(answer.body)
        if self._asking.is_hung():
            part_after(response)
        return response

    def reject(self, verb: str, status: int, reason: str, error: str) -> web.Response:
        self._metrics.rejected(reason)
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= _TOLD_AGAIN_SECONDS:
            self._reported_at = now
            _LOG.warning("A request is not answered", verb=verb, status=status, err=error)
        else:
            _LOG.v(4, "A request is not answered", verb=verb, status=status, err=error)
        return _rejection(status, error)


class _Answering:
    """One verb each: the question out of a body, and the answer to it."""

    def __init__(self, asking: Asking, metrics: Metrics) -> None:
        self._asking = asking
        self._metrics = metrics
        self._lists = NameLists(read_names)
        self._reading = asyncio.Lock()

    async def filter(self, body: Body) -> _Answer:
        request = await self._nodes_request(body)
        count = len(request.asked.names)
        advice, answer = await self._advised(
            "filter",
            self._asking.filter(request.asked),
            lambda advice: filter_answer(request, advice),
            neutral=neutral_filter(FAILED),
        )
        left = count if advice.kept is None else len(advice.kept)
        outcome = advice.error or _outcome(f"{left} left", advice.neutral)
        return _Answer(answer, request.asked.pod, count, outcome)

    async def prioritize(self, body: Body) -> _Answer:
        request = await self._nodes_request(body)
        count = len(request.asked.names)
        advice, answer = await self._advised(
            "prioritize",
            self._asking.prioritize(request.asked),
            lambda advice: priorities_answer(request, advice),
            neutral=neutral_priorities(request.asked, FAILED),
        )
        outcome = _outcome(f"up to {max(advice.priorities, default=0)}", advice.neutral)
        return _Answer(answer, request.asked.pod, count, outcome)

    async def preempt(self, body: Body) -> _Answer:
        request = await self._off_thread(preemption_request, body)
        advice, answer = await self._advised(
            "preempt",
            self._asking.preempt(request.asked),
            lambda advice: preemption_answer(request, advice),
            neutral=neutral_preemption(request.asked, FAILED),
        )
        outcome = _outcome(f"{len(advice.kept)} left", advice.neutral)
        return _Answer(answer, request.asked.pod, len(request.victims), outcome)

    async def bind(self, body: Body) -> _Answer:
        request = await self._off_thread(binding_request, body)
        try:
            error = await self._asking.bind(request.pod, request.node_name)
        except Exception as failure:
            _LOG.exception("A binding has a bug", pod=request.pod.key, node=request.node_name)
            error = f"Lowtide cannot bind the pod: {type(failure).__name__}: {failure}"
        outcome = error or f"bound to {request.node_name}"
        return _Answer(binding_answer(error), request.pod, 1, outcome)

    async def _nodes_request(self, body: Body) -> NodesRequest:
        quick = quick_nodes_request(body, self._lists)
        return await self._off_thread(nodes_request, body) if quick is None else quick

    async def _off_thread(self, read: Callable[[Body], T], body: Body) -> T:
        """On a thread, while the event loop goes on; one at a time, so that it has its turns."""
        async with self._reading:
            return await asyncio.to_thread(read, body)

    async def _advised(
        self,
        verb: str,
        advice: Awaitable[T],
        encode: Callable[[T], bytes],
        *,
        neutral: T,
    ) -> tuple[T, bytes]:
        try:
            given = await advice
            return given, encode(given)
        except QuantityError as error:
            raise BadRequestError(f"an amount in the request cannot be read: {error}") from None
        except Exception:
            _LOG.exception("A request cannot be answered; the answer is neutral", verb=verb)
            self._metrics.neutral_answer(verb, FAILED)
            return neutral, encode(neutral)


def _outcome(said: str, neutral: str) -> str:
    return f"neutral: {neutral}" if neutral else said


def _rejection(status: int, error: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=error_answer(error), status=status, headers=headers, content_type="application/json"
    )
