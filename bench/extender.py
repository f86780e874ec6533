"""How long `lowtide extender` takes to answer, as kube-scheduler would ask it: by the names of many
nodes at a steady rate, and with whole nodes one request at a time.

Watches tell of nodes and pods, and Prometheus is polled, while it is asked."""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from extender_load import Hit, Shot, one_by_one, open_loop, request_parts
from extender_objects import (
    ALL,
    HALF,
    NAMESPACE,
    SCHEDULER_NAMES,
    Json,
    NamesInOrder,
    Part,
    is_left,
    names_body,
    nodes_as_json,
    nodes_body,
)
from extender_processes import RunningExtender, Spent
from many_nodes import NODES, node_name

FILTER, PRIORITIZE, BINDING = "filter", "prioritize", "binding"
EVEN, RANDOM = "evenly", "at random"

PER_SECOND = 100
CONNECTIONS = 8
ORDERS = 8  # of names, each of which begins with another name for each pod
KEPT_EVERY, KEPT = 250, 5  # of so many pods the answers to so many are looked into
WHOSE = (ALL, ALL, ALL, ALL, HALF)
BOUND_AFTER_SECONDS = 0.015
WHOLE_NODES_REQUESTS = 40
SPARE_PODS = 1000  # for requests with whole nodes


@dataclass(frozen=True, slots=True)
class NamesResult:
    """Times are counted from when a request was due."""

    workload: str
    nodes: int
    scheduler: str
    arrivals: str
    verb: str
    round: int
    requests: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    sent_late_p99_ms: float  # until the client sent it
    neutral: int  # of both verbs
    cpu_share: float  # of one core, of the extender
    others_cores: float  # of the machine's, busy with something else meanwhile


@dataclass(frozen=True, slots=True)
class WholeNodesResult:
    workload: str
    nodes: int
    scheduler: str
    asked: str
    round: int
    requests: int
    request_mb: float
    answer_mb: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    neutral: int
    peak_memory_mb: float
    others_cores: float  # of the machine's, busy with something else meanwhile


class ExtenderBench:
    """One extender, which is asked for so long in each round."""

    def __init__(self, seconds: float, rounds: int) -> None:
        self._pods_of_a_run = int(seconds * PER_SECOND / 2)
        pods = self._pods_of_a_run * rounds * len((EVEN, RANDOM))
        self._chance = np.random.default_rng(3)
        self._extender = RunningExtender(
            {name: pods * WHOSE.count(name) // len(WHOSE) + SPARE_PODS for name in SCHEDULER_NAMES}
        )

    def __enter__(self) -> Self:
        self._extender.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._extender.__exit__(kind, error, trace)

    def names(self, arrivals: str, number: int) -> Iterator[NamesResult]:
        shots, extender = self._shots(arrivals), self._extender
        neutral_before, spent = extender.neutral_answers(), Spent(extender)
        hits = open_loop(shots, connections=CONNECTIONS)
        share, others_cores = spent.extender_share(), spent.others_cores()
        neutral = extender.neutral_answers() - neutral_before
        check_names_answers(hits, is_any_neutral=neutral > 0)
        for verb in (FILTER, PRIORITIZE):
            of_verb = [each for each in hits if each.shot.kind == verb]
            ms = sorted(each.seconds * 1e3 for each in of_verb)
            late_ms = sorted(each.late_seconds * 1e3 for each in of_verb)
            yield NamesResult(
                workload="extender/names",
                nodes=NODES,
                scheduler="lowtide",
                arrivals=arrivals,
                verb=verb,
                round=number,
                requests=len(ms),
                p50_ms=_percentile(ms, 50),
                p99_ms=_percentile(ms, 99),
                max_ms=ms[-1],
                sent_late_p99_ms=_percentile(late_ms, 99),
                neutral=neutral,
                cpu_share=share,
                others_cores=others_cores,
            )

    def whole_nodes(self, count: int, number: int) -> Iterator[WholeNodesResult]:
        nodes = nodes_as_json(self._extender.whole_nodes()[:count])
        for asked, verb, scheduler_name, left in (
            ("filter, all left", FILTER, ALL, count),
            ("filter, half left", FILTER, HALF, count // 2),
            ("prioritize", PRIORITIZE, ALL, count),
        ):
            shots = [
                self._shot(verb, nodes_body(self._pod_of(scheduler_name), nodes), is_kept=at == 0)
                for at in range(WHOLE_NODES_REQUESTS)
            ]
            neutral_before, spent = self._extender.neutral_answers(), Spent(self._extender)
            hits = one_by_one(shots)
            others_cores = spent.others_cores()
            neutral = self._extender.neutral_answers() - neutral_before
            check_whole_nodes_answers(hits, left, is_any_neutral=neutral > 0)
            ms = sorted(each.seconds * 1e3 for each in hits)
            yield WholeNodesResult(
                workload="extender/nodes",
                nodes=count,
                scheduler="lowtide",
                asked=asked,
                round=number,
                requests=len(ms),
                request_mb=sum(map(len, shots[0].parts)) / 1e6,
                answer_mb=hits[0].body_bytes / 1e6,
                p50_ms=_percentile(ms, 50),
                p99_ms=_percentile(ms, 99),
                max_ms=ms[-1],
                neutral=neutral,
                peak_memory_mb=self._extender.peak_memory_mb(),
                others_cores=others_cores,
            )

    def _shots(self, arrivals: str) -> list[Shot]:
        """For each pod filter with all names, in an order that no other pod has, prioritize with
        those that are left, and its binding."""
        orders = [NamesInOrder(self._chance) for _ in range(ORDERS)]
        firsts = self._chance.permutation(NODES)
        dues = self._dues(arrivals, 2 * self._pods_of_a_run)
        whose = itertools.cycle(WHOSE)
        shots: list[Shot] = []
        for number, (filter_due, prioritize_due) in enumerate(
            zip(dues[::2], dues[1::2], strict=True)
        ):
            name = next(whose)
            pod, order = self._pod_of(name), orders[number % ORDERS]
            first = int(firsts[number % NODES])
            is_kept = number % KEPT_EVERY < KEPT
            everything = names_body(pod, order.left_for(ALL, first))
            left = names_body(pod, order.left_for(name, first))
            shots += [
                self._shot(FILTER, everything, filter_due, is_kept=is_kept),
                self._shot(PRIORITIZE, left, prioritize_due, is_kept=is_kept),
                self._binding(pod, prioritize_due + BOUND_AFTER_SECONDS),
            ]
        return sorted(shots, key=lambda each: each.due_seconds)

    def _dues(self, arrivals: str, count: int) -> list[float]:
        if arrivals == EVEN:
            return [at / PER_SECOND for at in range(count)]
        gaps = self._chance.exponential(1 / PER_SECOND, count)
        return [float(each) for each in np.cumsum(gaps)]

    def _shot(self, verb: str, body: Sequence[Part], due: float = 0.0, *, is_kept: bool) -> Shot:
        to = self._extender.address
        return Shot(due, verb, to, request_parts(to, f"/scheduler/{verb}", body), is_kept=is_kept)

    def _binding(self, pod: Json, due: float) -> Shot:
        """To a node that every profile leaves."""
        metadata, to = pod["metadata"], self._extender.cluster
        target = node_name(2 * int(self._chance.integers(NODES // 2)))
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
            "target": {"kind": "Node", "name": target},
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{metadata['name']}/binding"
        return Shot(due, BINDING, to, request_parts(to, path, [json.dumps(body).encode()]))

    def _pod_of(self, scheduler_name: str) -> Json:
        """A pending one, each once."""
        return next(self._extender.pending[scheduler_name])


def check_names_answers(hits: Sequence[Hit], *, is_any_neutral: bool) -> None:
    """Neutral answers are counted and told; which ones they are is not known here."""
    for hit in hits:
        want = 201 if hit.shot.kind == BINDING else 200
        assert hit.status == want, f"{hit.shot.kind} was answered {hit.status}: {hit.body!r}"
    for hit in hits:
        if hit.shot.is_kept and not is_any_neutral:
            body = _asked(hit)
            is_half = body["Pod"]["spec"]["schedulerName"] == HALF
            check_names_answer(hit, body["NodeNames"], is_half=is_half)


def check_names_answer(hit: Hit, names: list[str], *, is_half: bool) -> None:
    answer = json.loads(hit.body)
    if hit.shot.kind == PRIORITIZE:
        assert [each["Host"] for each in answer] == names
        check_scores([each["Score"] for each in answer])
        return
    labelled = {
        node_name(number) for number in range(NODES) if is_left(number, HALF if is_half else ALL)
    }
    rejected = [*(answer["FailedNodes"] or ()), *(answer["FailedAndUnresolvableNodes"] or ())]
    assert not answer["Error"], answer["Error"]
    assert answer["NodeNames"] == [name for name in names if name in labelled]
    assert set(rejected) == set(names) - labelled


def check_whole_nodes_answers(hits: Sequence[Hit], left: int, *, is_any_neutral: bool) -> None:
    assert {hit.status for hit in hits} == {200}, [hit.status for hit in hits]
    if is_any_neutral:
        return
    for hit in hits:
        if not hit.shot.is_kept:
            continue
        answer = json.loads(hit.body)
        if hit.shot.kind == PRIORITIZE:
            assert len(answer) == left
            check_scores([each["Score"] for each in answer])
            continue
        sent_back = {each["metadata"]["name"] for each in answer["Nodes"]["items"]}
        asked = _asked(hit)["Nodes"]["items"]
        assert len(sent_back) == left
        assert answer["Nodes"]["items"] == [
            each for each in asked if each["metadata"]["name"] in sent_back
        ]


def check_scores(scores: Sequence[int]) -> None:
    """Links differ in their load, so scores do."""
    assert set(scores) <= set(range(11)), set(scores)
    assert len(set(scores)) > 3, set(scores)


def _asked(hit: Hit) -> Json:
    body: Json = json.loads(b"".join(hit.shot.parts[1:]))
    return body


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """The least that so many percent are not above."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
