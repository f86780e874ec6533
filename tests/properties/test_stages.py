"""Whatever happens, every pending pod is in one stage, only drawn transitions happen, and the
indexes agree with the records."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.properties.pod_events import PodEvents

import lowtide.scheduler
from lowtide.scheduler.machine import Machine
from lowtide.scheduler.pods import (
    ASSUMED,
    QUEUED,
    TRANSITIONS,
    Heap,
    PendingPod,
    Pods,
    Stage,
)

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
SCHEDULER = Path(lowtide.scheduler.__file__).parent

SEEDS = range(60)
MANY_SEEDS = range(300)  # some transitions are rare
STEPS = 400

DRAWN = {(before, after) for before, stages in TRANSITIONS.items() for after in stages}


def walk(seed: int) -> PodEvents:
    return PodEvents(seed, with_extenders=seed % 3 == 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_indexes_agree_with_the_records_after_every_event(seed: int) -> None:
    events = walk(seed)
    for _ in range(STEPS):
        events.step()
        check_records(events)
        check_heaps(events.machine.pods)
        check_pending(events)


def check_records(events: PodEvents) -> None:
    """Each record is in one stage, and what is known elsewhere of the pod goes with that."""
    machine = events.machine
    records, state = list(machine.pods), machine.state
    pending = events.pending if machine._paused is None else {}  # events are held
    assert len({record.uid for record in records}) == len(records)
    assert Counter(record.stage for record in records) == Counter(
        {stage: machine.pods.counts[stage] for stage in Stage if stage is not Stage.NOT_PENDING}
    )
    assert {record.uid for record in machine.queue} == {
        record.uid for record in records if record.stage in QUEUED
    }
    for record in records:
        placed, stage = state.placed(record.uid), record.stage
        if stage in ASSUMED:
            assert record.node_name
            if placed is None or not placed.is_assumed:
                assert stage is Stage.BINDING, "gone or confirmed before its answer"
                assert record.uid not in pending, "or it is assumed again"
            else:
                assert placed.node_name == record.node_name
        else:
            assert (placed, record.node_name, record.decision) == (None, "", None)
            assert not record.is_doubtful
            assert not record.is_back
        assert not record.memories or stage in ASSUMED
        assert record.eviction is None or stage in {Stage.UNSCHEDULABLE, Stage.EVICTING}
        assert (record.eviction is not None) >= (stage is Stage.EVICTING)
    paused = [record for record in records if record.stage is Stage.DECIDING]
    assert paused == ([] if machine._paused is None else [machine._paused.record])
    assumed = {each.uid for each in state.placed_pods() if is_assumed(machine, each.uid)}
    assert assumed <= {record.uid for record in records if record.stage in ASSUMED}


def is_assumed(machine: Machine, uid: str) -> bool:
    placed = machine.state.placed(uid)
    return placed is not None and placed.is_assumed


def check_heaps(pods: Pods) -> None:
    records = list(pods)
    heaps = {
        Stage.ACTIVE: pods.active,
        Stage.BACKOFF: pods.backoff,
        Stage.ERROR_BACKOFF: pods.error_backoff,
    }
    for stage, heap in heaps.items():
        assert in_heap(heap) == sorted(each.uid for each in records if each.stage is stage)
    parked = [record for group in pods.unschedulable.values() for record in group.values()]
    assert all(pods.unschedulable.values()), "no group is empty"
    assert {record.uid for record in parked} == {
        record.uid for record in records if record.stage is Stage.UNSCHEDULABLE
    }
    for group, members in pods.unschedulable.items():
        for uid, record in members.items():
            assert uid == record.uid
            assert group == (record.retry_on, record.rejected_by, record.signature)
    assert awaited(pods) == sorted(
        (record.uid, deadline.waits_for, deadline.at)
        for record in records
        for deadline in record.deadlines.values()
    )
    for record in records:
        waits_for = set(record.deadlines)
        match record.stage:
            case Stage.WAITING:
                assert waits_for
                assert "" not in waits_for
            case Stage.UNCONFIRMED:
                assert waits_for <= {""}
            case _:
                assert not waits_for


def in_heap(heap: Heap[PendingPod]) -> list[str]:
    """The uids of its valid entries."""
    return sorted(each.uid for _, number, each in heap._entries if each.entry == number)


def awaited(pods: Pods) -> list[tuple[str, str, float]]:
    return sorted(
        (each.record.uid, each.waits_for, at)
        for at, number, each in pods.deadlines._entries
        if each.entry == number
    )


def check_pending(events: PodEvents) -> None:
    """No pod is lost: what the watch brought without a node has a record, unless the scheduler
    was told that it goes, or that it has a node or is gone."""
    pods = events.machine.pods
    if events.machine._paused is not None:
        return  # events are held
    for uid, pod in events.pending.items():
        record = pods.by_uid.get(uid)
        if record is None:
            assert pod.is_terminating or uid in events.given_up, uid
        else:
            assert record.pod == pod


def spied(events: PodEvents) -> set[tuple[Stage, Stage]]:
    """Fills with the transitions that happen."""
    pods, seen = events.machine.pods, set[tuple[Stage, Stage]]()
    move = pods.move

    def noted(record: PendingPod, stage: Stage) -> None:
        before = record.stage
        move(record, stage)
        if before is not stage:
            seen.add((before, stage))

    setattr(pods, "move", noted)  # noqa: B010
    return seen


def test_what_is_drawn_is_what_happens() -> None:
    seen = set()
    for seed in MANY_SEEDS:
        events = walk(seed)
        happened = spied(events)
        for _ in range(STEPS):
            events.step()
        seen |= happened
    assert seen == DRAWN


def test_one_place_changes_the_stage() -> None:
    writers = [
        (path.name, function.name)
        for path in sorted(SCHEDULER.glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "stage" and is_written(node)
    ]
    assert writers == [("pods.py", "move")]


def is_written(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def test_the_diagram_shows_the_transitions() -> None:
    (diagram,) = re.findall(
        r"```mermaid\nstateDiagram-v2\n(.*?)```", ARCHITECTURE.read_text(), re.S
    )
    arrows = re.findall(r"^ +(\S+) --> (\S+?)(?::.*)?$", diagram, re.M)
    assert len(arrows) == diagram.count("-->")
    assert len(set(arrows)) == len(arrows)
    assert {(stage_named(before), stage_named(after)) for before, after in arrows} == DRAWN


def stage_named(name: str) -> Stage:
    return Stage.NOT_PENDING if name == "[*]" else Stage[name]
