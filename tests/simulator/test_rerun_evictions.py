"""A recording with preemption, or without, under a configuration that does otherwise: who goes, who
comes back, and who never went."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.records.recorded_run import CONFIG, RecordedRun, bound
from tests.simulator.test_rerun import config, publish, started

from lowtide.app.registry import make_registry
from lowtide.app.replay import compare
from lowtide.framework.plugin import Allow, Nodes, Pod, Wait
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.meta import OwnerReference
from lowtide.objects.pod import PodCondition
from lowtide.scheduler.actions import Evict
from lowtide.scheduler.events import EvictionEnded, PermitAnswered, Turn
from lowtide.simulator.rerun_report import Compared, Elsewhere
from lowtide.testing import make_node, make_pod

OWNER = OwnerReference(kind="ReplicaSet", name="web", uid="rs", controller=True)
HIGH = make_pod("high", cpu="2", priority=10)


def owned(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, owner_references=[OWNER]))


LOW = owned(make_pod("low", cpu="2"))
AGAIN = owned(make_pod("low-again", cpu="2"))


def without_preemption() -> dict[str, Any]:
    plugins = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    return {**CONFIG, "profiles": [{"schedulerName": "lowtide", "plugins": plugins}]}


def only_open_nodes() -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "is-open", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    args = [{"name": "NodeAffinity", "args": {"addedAffinity": required}}]
    return {**CONFIG, "profiles": [{"schedulerName": "lowtide", "pluginConfig": args}]}


def begin(run: RecordedRun, low: Pod = LOW) -> None:
    """The node is full when a more important pod comes."""
    run.add(make_node("one", cpu="2"))
    run.listed()
    run.add(low)
    run.place_all()
    run.step(Modified(started(low, "one", run.clock())))
    run.add(HIGH)


def evicted(run: RecordedRun) -> None:
    """As preemption goes on a cluster: told, deleted, made anew, gone."""
    evict = next(each for each in run.step(Turn()) if isinstance(each, Evict))
    (victim,) = evict.victims
    condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    told = replace(victim, status=replace(victim.status, conditions=[condition]))
    run.step(Modified(told))
    meta = replace(told.metadata, deletion_timestamp="2026-01-01T00:00:30Z")
    going = replace(told, metadata=meta)
    run.step(Modified(going))
    run.step(EvictionEnded(evict.pod.uid, evicted=evict.victims))
    run.add(AGAIN)
    run.clock.advance(seconds=5.0)
    run.step(Deleted(going))
    run.place_all()


def recorded(
    tmp_path: Path, config: Mapping[str, Any], *stories: Callable[[RecordedRun], None]
) -> Path:
    with RecordedRun(tmp_path / "run.lowtide", config) as run:
        for story in stories:
            story(run)
    return tmp_path / "run.lowtide"


def later(seconds: float, *events: Any) -> Callable[[RecordedRun], None]:
    def happen(run: RecordedRun) -> None:
        run.clock.advance(seconds=seconds)
        for event in events:
            run.step(event)
        run.place_all()

    return happen


def rows(recording: Path, config: Mapping[str, Any], plugins: Any = None) -> list[Compared]:
    file = recording.parent / "other"
    file.write_text(json.dumps(dict(config)))
    made = compare(recording, make_registry(plugins or {}), [file], lambda done, total: None)
    assert made.warnings == ()
    return list(made.rows)


def counts(row: Compared) -> tuple[int, int, int]:
    return row.placed, row.pending, row.evicted


def test_the_same_configuration_evicts_and_brings_back_the_same(tmp_path: Path) -> None:
    recording = recorded(tmp_path, CONFIG, begin, evicted)
    then, same = rows(recording, CONFIG)
    assert counts(then) == (2, 1, 1)
    assert counts(same) == (2, 1, 1)
    assert same.moved_pods == []


def test_who_is_not_evicted_here_stays_and_is_not_there_twice(tmp_path: Path) -> None:
    recording = recorded(
        tmp_path, CONFIG, begin, evicted, later(9.0, Added(make_node("two", cpu="2")))
    )
    then, other = rows(recording, without_preemption())
    assert counts(then) == (3, 0, 1)
    assert counts(other) == (2, 0, 0)  # its replacement would have taken the second node
    assert other.moved_pods == [
        Elsewhere(
            "default/high",
            *("one", "two"),
            "the recorded node does not fit, or is not among the best",
        )
    ]


def test_who_stays_goes_when_its_recorded_replacement_goes(tmp_path: Path) -> None:
    recording = recorded(tmp_path, CONFIG, begin, evicted, later(9.0, Deleted(AGAIN)))
    _, other = rows(recording, without_preemption())
    assert counts(other) == (2, 0, 0)
    assert other.moved_pods == []


def test_who_is_evicted_here_later_is_replaced_as_it_was_then(tmp_path: Path) -> None:
    open_node = make_node("one", cpu="2", labels={"is-open": "yes"})
    closed_node = make_node("one", cpu="2")

    def begin_closed(run: RecordedRun) -> None:
        run.add(open_node)
        run.listed()
        run.add(LOW)
        run.place_all()
        run.step(Modified(closed_node))
        run.add(HIGH)

    open_again = later(60.0, Modified(open_node))
    another = later(60.0, Added(make_node("two", cpu="2", labels={"is-open": "yes"})))
    recording = recorded(tmp_path, CONFIG, begin_closed, evicted, open_again, another)
    then, other = rows(recording, only_open_nodes())
    assert counts(then) == (3, 0, 1)
    assert counts(other) == (3, 0, 1)
    assert other.moved_pods == []


def test_who_is_evicted_here_alone_comes_back(tmp_path: Path) -> None:
    recording = recorded(
        tmp_path, without_preemption(), begin, later(9.0), later(40.0, Deleted(bound(HIGH, "one")))
    )
    then, other = rows(recording, CONFIG)
    assert counts(then) == (1, 0, 0)
    assert counts(other) == (2, 0, 1)
    assert other.moved_pods == [Elsewhere("default/high", None, "one", "it had no node")]


def test_who_came_back_here_goes_when_the_recorded_one_goes(tmp_path: Path) -> None:
    gone = later(5.0, Deleted(started(LOW, "one", 0.0)))
    recording = recorded(tmp_path, without_preemption(), begin, later(2.0), gone)
    _, other = rows(recording, CONFIG)
    assert counts(other) == (2, 0, 1)
    assert other.moved_pods == [Elsewhere("default/low", "one", None, "evicted")]


def test_a_pod_without_owner_does_not_come_back(tmp_path: Path) -> None:
    alone = make_pod("low", cpu="2")
    recording = recorded(tmp_path, without_preemption(), lambda run: begin(run, alone), later(2.0))
    _, other = rows(recording, CONFIG)
    assert counts(other) == (2, 0, 1)
    assert other.moved_pods == [
        Elsewhere("default/low", "one", None, "evicted"),
        Elsewhere("default/high", None, "one", "it had no node"),
    ]


def test_who_is_gone_before_it_is_evicted_is_not_evicted(tmp_path: Path) -> None:
    """Between the decision to evict it and the eviction, 10 ms later."""
    gone = later(-0.095, Deleted(started(LOW, "one", 0.0)))  # a step takes 0.1 s
    recording = recorded(tmp_path, without_preemption(), begin, gone, later(9.0))
    _, other = rows(recording, CONFIG)
    assert counts(other) == (2, 0, 0)
    assert other.moved_pods == []


def test_whom_the_recorded_scheduler_promised_a_node_is_promised_none_here(tmp_path: Path) -> None:
    """What is promised to the one would be kept free from the other."""
    promised = make_pod(
        "promised", cpu="2", priority=20, nominated="one", node_selector={"is-open": "yes"}
    )
    recording = recorded(
        tmp_path,
        without_preemption(),
        lambda run: run.add(make_node("one", cpu="2")),
        RecordedRun.listed,
        later(1.0, Added(promised), Added(HIGH)),
    )
    then, other = rows(recording, without_preemption())
    assert counts(then) == (0, 2, 0)
    assert counts(other) == (1, 1, 0)


@pytest.mark.parametrize(
    ("seconds", "placed"),
    [
        pytest.param(25.0, 1, id="the room is not free before"),
        pytest.param(35.0, 2, id="the room is free after"),
    ],
)
def test_a_victim_leaves_after_its_grace(tmp_path: Path, seconds: float, placed: int) -> None:
    recording = recorded(tmp_path, without_preemption(), begin, later(seconds, Deleted(HIGH)))
    _, other = rows(recording, CONFIG)
    assert other.placed == placed


def test_what_a_victim_carried_goes_with_it(tmp_path: Path) -> None:
    low = make_pod("low", cpu="2", annotations={"lowtide.dev/traffic": "1G"})  # a tenth of a link

    def measured(run: RecordedRun) -> None:
        run.clock.advance(seconds=300.0)
        publish(run, {"one": 5}, [make_node("one", cpu="2")])

    calm = config(weight=None)
    calm["profiles"][0]["plugins"]["postFilter"] = {"disabled": [{"name": "DefaultPreemption"}]}
    recording = recorded(tmp_path, calm, lambda run: begin(run, low), measured)
    then, other = rows(recording, config(weight=None))
    assert [share for _, share in then.course] == pytest.approx([0.5])
    assert [share for _, share in other.course] == pytest.approx([0.4])


# Plugins that let pods wait.


class Waits:
    """Lets a pod wait until the next one comes, or somebody says so."""

    name = "Waits"

    def __init__(self, args: object = None) -> None:
        self.waiting: list[str] = []

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Wait:
        if self.waiting:
            return Allow(also=frozenset(self.waiting))
        self.waiting.append(pod.uid)
        return Wait(60.0)


def waiting_config() -> dict[str, Any]:
    plugins = {"permit": {"enabled": [{"name": "Waits"}]}}
    return {**CONFIG, "profiles": [{"schedulerName": "lowtide", "plugins": plugins}]}


def arrive(*names: str) -> Callable[[RecordedRun], None]:
    def happen(run: RecordedRun) -> None:
        run.add(make_node("one", cpu="8"))
        run.listed()
        run.add(*(make_pod(name) for name in names))
        run.place_all()

    return happen


@pytest.mark.parametrize(
    ("story", "figures"),
    [
        pytest.param([arrive("a", "b")], (2, 0, 0), id="the next one lets it go"),
        pytest.param([arrive("a")], (0, 1, 0), id="nobody lets it go"),
        pytest.param(
            [arrive("a"), later(5.0, PermitAnswered(make_pod("a").uid, "Waits"))],
            (1, 0, 0),
            id="somebody said so when it was recorded",
        ),
    ],
)
def test_a_plugin_that_lets_pods_wait(
    tmp_path: Path, story: list[Callable[[RecordedRun], None]], figures: tuple[int, int, int]
) -> None:
    recording = recorded(tmp_path, CONFIG, *story)
    _, waiting = rows(recording, waiting_config(), {"Waits": Waits})
    assert counts(waiting) == figures
