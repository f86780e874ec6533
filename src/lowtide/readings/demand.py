"""How much traffic a pod is expected to carry: stated, learned from its like, or taken for granted.

The meter learns from what Prometheus says of running pods; the ledger and the score ask."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.readings.amounts import bytes_per_second
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
    """Bytes per second in both directions."""

    receive: float
    transmit: float


NO_TRAFFIC: Final = Traffic(0.0, 0.0)


class PodTraffic:
    """What to expect of a pod; a value that is never changed (cluster.reading.Expectation)."""

    fields = (EXPECTED_RECEIVE, EXPECTED_TRANSMIT)

    def __init__(
        self, by_owner: Mapping[Owner, Traffic], of_all: Traffic | None, of_unknown: Traffic
    ) -> None:
        self._by_owner = by_owner
        self._of_any = of_unknown if of_all is None else of_all

    def of(self, pod: Pod) -> Traffic:
        stated = stated_traffic(pod)
        if stated is not None:
            return limited(stated, pod)
        owner = owner_of(pod)
        found = self._by_owner.get(owner, self._of_any) if owner else self._of_any
        return limited(found, pod)


class Owners:
    """What the pods of each owner were seen to carry, remembered when they are gone."""

    def __init__(self) -> None:
        self._by_owner: dict[Owner, Traffic] = {}
        self._of_all: Traffic | None = None

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
    ) -> None:
        """From what Prometheus says each pod carries.

        A pod that has not started, or ran for less than half the window, tells nothing yet; one
        that ran for less than the whole was measured over the rest as well, and is scaled up.
        Pods on the host's network report the node's own devices."""
        received, transmitted = _by_pod(receive), _by_pod(transmit)
        seen: dict[Owner | None, list[Traffic]] = {}
        for pod in pods:
            name = (pod.namespace, pod.name)
            if pod.spec.host_network or (name not in received and name not in transmitted):
                continue
            started_at = pod.started_at
            covered = 0.0 if started_at is None else sampled_at - started_at
            if covered < window_seconds / 2:
                continue
            scale = window_seconds / min(covered, window_seconds)
            found = Traffic(scale * received.get(name, 0.0), scale * transmitted.get(name, 0.0))
            seen.setdefault(owner_of(pod), []).append(found)
        for owner, found_of_owner in seen.items():
            if owner is not None:
                self._by_owner.pop(owner, None)  # the newest are last
                self._by_owner[owner] = _mean(found_of_owner)
        while len(self._by_owner) > MOST_OWNERS_REMEMBERED:
            del self._by_owner[next(iter(self._by_owner))]
        everything = [found for found_of_owner in seen.values() for found in found_of_owner]
        if everything:
            self._of_all = _mean(everything)


def owner_of(pod: Pod) -> Owner | None:
    """Whose pods are alike: the Deployment rather than one ReplicaSet of it, the CronJob rather
    than one Job of it."""
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
    """Whether the pod's annotation, if it has one, says something."""
    return TRAFFIC_ANNOTATION not in pod.metadata.annotations or stated_traffic(pod) is not None


def stated_traffic(pod: Pod) -> Traffic | None:
    """What the pod's annotation says: `240M` for both directions, or
    `receive=240M,transmit=80M`, in bits/s; None where it says nothing that can be read."""
    text = pod.metadata.annotations.get(TRAFFIC_ANNOTATION, "").strip()
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
    """No more than the pod's bandwidth annotations let through."""
    if not pod.metadata.annotations:
        return traffic
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
        if 0 <= one.value < float("inf")
    }


def _mean(found: Sequence[Traffic]) -> Traffic:
    return Traffic(
        sum(each.receive for each in found) / len(found),
        sum(each.transmit for each in found) / len(found),
    )
