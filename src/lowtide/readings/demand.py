"""How much traffic a pod is expected to carry: as annotated, as learned from the owner's pods, or a
default.

The meter learns from Prometheus's rates of running pods; ledgers and NetworkTraffic's score ask."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.readings.amounts import MOST_BYTES_PER_SECOND, bytes_per_second
from lowtide.readings.series import Series

TRAFFIC_ANNOTATION: Final = "lowtide.dev/traffic"
IGNORE: Final = "ignore"
READABLE_TRAFFIC: Final = "240M, in bits/s; receive=240M,transmit=80M; or ignore"
INGRESS_LIMIT: Final = "kubernetes.io/ingress-bandwidth"
EGRESS_LIMIT: Final = "kubernetes.io/egress-bandwidth"

EXPECTED_RECEIVE: Final = "expected_receive"
EXPECTED_TRANSMIT: Final = "expected_transmit"

MOST_OWNERS_REMEMBERED: Final = 20_000

_STATED = re.compile(r"(receive|transmit)=(.+)")
_JOB_OF_CRON_JOB = re.compile(r"(.+)-[0-9]{8,}")

Owner = tuple[str, str, str]  # namespace, kind, name
PodName = tuple[str, str]


class Traffic(NamedTuple):
    """Bytes per second in each direction."""

    receive: float
    transmit: float


NO_TRAFFIC: Final = Traffic(0.0, 0.0)


class PodTraffic:
    """The traffic to expect from a pod. Immutable (implements cluster.reading.Expectation)."""

    fields = (EXPECTED_RECEIVE, EXPECTED_TRANSMIT)

    def __init__(
        self, by_owner: Mapping[Owner, Traffic], of_all: Traffic | None, of_unknown: Traffic
    ) -> None:
        self._by_owner = by_owner
        self._of_any = of_unknown if of_all is None else of_all

    def expected_for(self, pod: Pod) -> Traffic:
        if not pod.metadata.annotations:
            return self._of_same_owner(pod)
        stated = stated_traffic(pod)
        return limited(self._of_same_owner(pod) if stated is None else stated, pod)

    def _of_same_owner(self, pod: Pod) -> Traffic:
        owner = owner_of(pod)
        return self._by_owner.get(owner, self._of_any) if owner else self._of_any


class Owners:
    """The traffic learned from each owner's pods, kept after the pods are gone."""

    def __init__(self) -> None:
        self._by_owner: dict[Owner, Traffic] = {}
        self._of_all: Traffic | None = None
        self._running: dict[str, _Running] = {}  # by uid

    def expectation(self, of_unknown: Traffic) -> PodTraffic:
        return PodTraffic(dict(self._by_owner), self._of_all, of_unknown)

    def learn(
        self,
        receive: Sequence[Series],
        transmit: Sequence[Series],
        pods: Iterable[Pod],
        *,
        sampled_at: float,
        window_seconds: float,
    ) -> bool:
        """Learn from the measured rates of pods. True if at least one pod counted.

        A new mean counts for half of an owner's value, because one window may not be typical. Pods
        that ran for less than half the window are skipped; the rates of pods that ran for less than
        the whole window are scaled up. Pods on the host network are skipped, because they report
        the node's devices."""
        received, transmitted = _by_pod(receive), _by_pod(transmit)
        seen: dict[Owner | None, _Sum] = {}
        running: dict[str, _Running] = {}
        for pod in pods:
            meta = pod.metadata
            name = (meta.namespace, meta.name)
            in_rate, out_rate = received.get(name), transmitted.get(name)
            if (in_rate is None and out_rate is None) or pod.spec.host_network:
                continue
            known = self._running.get(meta.uid) or _running(pod)
            if known is None:
                continue
            running[meta.uid] = known
            covered = sampled_at - known.since
            if covered < window_seconds / 2:
                continue
            scale = window_seconds / covered if covered < window_seconds else 1.0
            total = seen.get(known.owner)
            if total is None:
                total = seen[known.owner] = _Sum()
            total.pods += 1
            total.receive += scale * (in_rate or 0.0)
            total.transmit += scale * (out_rate or 0.0)
        self._running = running
        for owner, total in seen.items():
            if owner is not None:
                before = self._by_owner.pop(owner, None)  # reinserted last, as the newest
                self._by_owner[owner] = _smoothed(total.mean(), before)
        while len(self._by_owner) > MOST_OWNERS_REMEMBERED:
            del self._by_owner[next(iter(self._by_owner))]
        if seen:
            self._of_all = _sum_of_all(seen.values()).mean()
        return bool(seen)


@dataclass(slots=True)
class _Sum:
    pods: int = 0
    receive: float = 0.0
    transmit: float = 0.0

    def mean(self) -> Traffic:
        return Traffic(self.receive / self.pods, self.transmit / self.pods)


def _sum_of_all(sums: Iterable[_Sum]) -> _Sum:
    found = _Sum()
    for each in sums:
        found.pods += each.pods
        found.receive += each.receive
        found.transmit += each.transmit
    return found


class _Running(NamedTuple):
    """What is computed once for each running pod. A container's restart does not reset the pod's
    counters, so the first start counts."""

    owner: Owner | None
    since: float


def _running(pod: Pod) -> _Running | None:
    started_at = pod.started_at
    return None if started_at is None else _Running(owner_of(pod), started_at)


def owner_of(pod: Pod) -> Owner | None:
    """The owner whose pods carry similar traffic: the Deployment instead of its ReplicaSet, the
    CronJob instead of its Job."""
    controller = pod.controller
    if controller is None:
        return None
    kind, name = controller.kind, controller.name
    template_hash = pod.labels.get("pod-template-hash")
    if kind == "ReplicaSet" and template_hash and name.endswith(f"-{template_hash}"):
        return pod.namespace, "Deployment", name.removesuffix(f"-{template_hash}")
    of_cron_job = _JOB_OF_CRON_JOB.fullmatch(name) if kind == "Job" else None
    if of_cron_job is not None:
        return pod.namespace, "CronJob", of_cron_job[1]
    return pod.namespace, kind, name


def ignores_traffic(pod: Pod) -> bool:
    return pod.metadata.annotations.get(TRAFFIC_ANNOTATION, "").strip() == IGNORE


def is_readable(pod: Pod) -> bool:
    """True if the pod has no traffic annotation or a valid one."""
    return TRAFFIC_ANNOTATION not in pod.metadata.annotations or stated_traffic(pod) is not None


def stated_traffic(pod: Pod) -> Traffic | None:
    """The traffic in the pod's annotation: `240M` for both directions, or
    `receive=240M,transmit=80M`, in bits/s. None if it is absent or cannot be parsed."""
    if TRAFFIC_ANNOTATION not in pod.metadata.annotations:
        return None
    text = pod.metadata.annotations[TRAFFIC_ANNOTATION].strip()
    if not text:
        return None
    if text == IGNORE:
        return NO_TRAFFIC
    try:
        if "=" not in text:
            both = _stated_amount(text)
            return Traffic(both, both)
        stated = [_STATED.fullmatch(part.strip()) for part in text.split(",")]
        amounts = {part[1]: _stated_amount(part[2].strip()) for part in stated if part}
        if len(amounts) < len(stated):
            return None
        return Traffic(amounts.get("receive", 0.0), amounts.get("transmit", 0.0))
    except QuantityError:
        return None


def _stated_amount(text: str) -> float:
    return bytes_per_second(text, may_be_zero=True)


def limited(traffic: Traffic, pod: Pod) -> Traffic:
    """The traffic, capped by the pod's bandwidth annotations."""
    return Traffic(
        min(traffic.receive, _limit(pod, INGRESS_LIMIT)),
        min(traffic.transmit, _limit(pod, EGRESS_LIMIT)),
    )


def _limit(pod: Pod, annotation: str) -> float:
    text = pod.metadata.annotations.get(annotation)
    if text is None:
        return float("inf")
    try:
        return bytes_per_second(text)
    except QuantityError:
        return float("inf")


def _by_pod(series: Sequence[Series]) -> dict[PodName, float]:
    return {
        (one.labels.get("namespace", ""), one.labels.get("pod", "")): one.value
        for one in series
        if 0 <= one.value <= MOST_BYTES_PER_SECOND
    }


def _smoothed(found: Traffic, before: Traffic | None) -> Traffic:
    if before is None:
        return found
    return Traffic((found.receive + before.receive) / 2, (found.transmit + before.transmit) / 2)
