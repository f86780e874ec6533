"""In which order kube-scheduler v1.36.4 took pods from its queue, and in which Lowtide does.

`queue_data/` holds gzipped JSON lines of `id`, `scenario` and `expected`, recorded by
tools/recorder: what happened at which moment, who was taken, and who waited where afterwards.
"""

from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from tests.oracle.recorded import Case, cases_in

from lowtide.app.no_binder import NoBinder
from lowtide.config.load import load_default
from lowtide.framework.change import Change, node_change, pod_change
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Registry
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.plugins import BUILT_IN
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.pods import PendingPod, Pods, Stage
from lowtide.scheduler.queue import Queue

Thing = TypeVar("Thing")

DATA = Path(__file__).parent / "queue_data"
CASES_BY_FAMILY = {"recorded_queue": 100, "recorded_wakes": 300}
# These plugins have a pod tried again on some changes of nodes where kube-scheduler's leave it: a
# try too many does no harm. No plugin lets a pod wait that kube-scheduler tries again.
CAREFUL_PLUGINS = frozenset({"InterPodAffinity", "PodTopologySpread"})
RECORDED_NAME = {
    Stage.ACTIVE: "active",
    Stage.BACKOFF: "backoff",
    Stage.ERROR_BACKOFF: "backoff",
    Stage.UNSCHEDULABLE: "unschedulable",
    Stage.GATED: "gated",
}


ALL = tuple(cases_in(DATA))


def test_every_recorded_case_is_here() -> None:
    assert Counter(case.family for case in ALL) == CASES_BY_FAMILY


@pytest.fixture(scope="module")
def profile() -> Profile:
    built = Registry(BUILT_IN).build(load_default(), {Binder: NoBinder()})
    (profile,) = built.profiles.values()
    return profile


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in ALL])
def test_takes_pods_in_the_recorded_order(profile: Profile, case: Case) -> None:
    machine = Machine({"default-scheduler": profile})
    found = [step_on(machine.queue, machine.pods, step, profile) for step in case.scenario["steps"]]
    assert found == case.expected["steps"] or found == woken_besides(case)


def woken_besides(case: Case) -> list[dict[str, Any]]:
    """What is recorded, with the one pod tried again after all where a careful plugin rejected
    it."""
    *before, last = case.expected["steps"]
    plugins = set(case.scenario["steps"][1].get("plugins", ()))
    if case.family != "recorded_wakes" or not plugins & CAREFUL_PLUGINS:
        return [*before, last]
    return [*before, {"active": last.get("unschedulable", last.get("active"))}]


def step_on(queue: Queue, pods: Pods, step: dict[str, Any], profile: Profile) -> dict[str, Any]:
    now = step["at"]
    queue.is_ready(now)  # time has passed: those whose waiting ended move on
    popped = None
    match step["do"]:
        case "add":
            pod = read(step["pod"], Pod)
            queue.add(PendingPod(pod, pod.uid, profile, first_seen_at=now, queued_at=now))
        case "update":
            pod = read(step["pod"], Pod)
            queue.update(known(pods, pod.uid), pod, now)
        case "delete":
            pods.move(known(pods, step["name"].removeprefix("shop/")), Stage.NOT_PENDING)
        case "pop":
            popped = take(queue, step, profile)
        case _:
            queue.wake(change_of(step), now)
    found: dict[str, Any] = {} if popped is None else {"popped": popped}
    for queued in queue:
        found.setdefault(RECORDED_NAME[queued.stage], []).append(full_name(queued.pod))
    return {key: names if key == "popped" else sorted(names) for key, names in found.items()}


def known(pods: Pods, uid: str) -> PendingPod:
    record = pods.by_uid.get(uid)
    assert record is not None
    return record


def take(queue: Queue, step: dict[str, Any], profile: Profile) -> str | None:
    now = step["at"]
    queued = queue.pop(now)
    if queued is None:
        return None
    match step["then"]:
        case "refuse":
            plugins = frozenset(step["plugins"])
            queue.park(queued, plugins, profile.retry_on(plugins, touched=0), now)
        case "fail":
            queue.retry(queued, now)
    return full_name(queued.pod)


def change_of(step: dict[str, Any]) -> Change:
    match step["do"]:
        case "nodeAdded":
            return node_change(None, read(step["node"], Node))
        case "nodeUpdated":
            return node_change(read(step["before"], Node), read(step["node"], Node))
        case "podAdded":
            return pod_change(None, read(step["pod"], Pod))
        case "podDeleted":
            return pod_change(read(step["pod"], Pod), None)
    raise AssertionError(f"{step['do']} is not known here; teach change_of")


def read(data: Any, kind: type[Thing]) -> Thing:
    return msgspec.convert(data, kind, strict=False)


def full_name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
