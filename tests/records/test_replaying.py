import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.records.recorded_run import CONFIG, RecordedRun

from lowtide.cluster.reading import Reading
from lowtide.framework.plugin import Allow, BindOutcome, Nodes, Pod, Reject, Wait
from lowtide.objects.events import Deleted, Listed, Modified
from lowtide.objects.meta import ObjectMeta
from lowtide.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from lowtide.objects.volumes import ClaimSource, Volume
from lowtide.readings.demand import PodTraffic, Traffic
from lowtide.records.decision_form import DecisionForm
from lowtide.records.hashed_names import HashedNames
from lowtide.records.recording import Recording, Step
from lowtide.records.recording_header import RecordingError
from lowtide.records.replaying import Replay
from lowtide.scheduler.actions import AskExtenders, Bind, Evict, LookUpBinding
from lowtide.scheduler.binding_cycle import CONFIRMED_WITHIN_SECONDS
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    EvictionEnded,
    ExtendersAnswered,
    ReadingPublished,
    Turn,
)
from lowtide.scheduler.extending import ExtenderFailed, Filtered, Priorities
from lowtide.testing import make_node, make_pod

WITH_TRAFFIC = {
    **CONFIG,
    "profiles": [
        {
            "schedulerName": "lowtide",
            "plugins": {"score": {"enabled": [{"name": "NetworkTraffic", "weight": 10}]}},
            "pluginConfig": [
                {
                    "name": "NetworkTraffic",
                    "args": {"prometheusAddress": "http://127.0.0.1:9", "podTraffic": "80M"},
                }
            ],
        }
    ],
}
PLAIN_AND_HASHED = [pytest.param(False, id="plain"), pytest.param(True, id="hashed")]


def ours(name: str, **more: Any) -> Pod:
    pod = make_pod(name, **more)
    return replace(pod, spec=replace(pod.spec, scheduler_name="lowtide"))


def traffic(receive: list[float], sampled_at: float) -> Reading:
    values, count = np.array(receive), len(receive)
    capacity = np.full(count, 1.25e8)
    columns = {
        "value": values,
        "highest_value": np.full(count, values.max()),
        "receive": values,
        "transmit": values,
        "capacity": capacity,
        "share": values / capacity,
        "state": np.zeros(count),
        "is_hot": np.zeros(count),
        "may_be_hot": np.ones(count),
        "is_guessed": np.zeros(count),
    }
    owners = {("default", "Deployment", "web"): Traffic(1e6, 2e6)}
    return Reading(
        names=tuple(f"node-{number}" for number in range(count)),
        columns=columns,
        of_others={name: float(column[0]) for name, column in columns.items()},
        expects=PodTraffic(owners, None, Traffic(1e7, 1e7)),
        sampled_at=sampled_at,
        window_seconds=60.0,
    )


def a_busy_hour(run: RecordedRun) -> None:
    """Readings, pods that fit nowhere, errors of bindings, labels, evictions, time that passes."""
    (source,) = (each for profile in run.profiles.values() for each in profile.readings)
    zones = ["east", "west", "north"]
    for number in range(6):
        labels = {
            "kubernetes.io/hostname": f"node-{number}",
            "topology.kubernetes.io/zone": zones[number % 3],
            "generation": str(number),
        }
        run.add(
            make_node(f"node-{number}", cpu="1600m", labels=labels, images={"app:latest": 10**9})
        )
    run.listed()
    run.step(ReadingPublished(source, traffic([1e7, 9e7, 2e7, 8e7, 3e7, 7e7], 1000.0)))
    for number in range(18):
        run.add(ours(f"web-{number}", cpu="500m", labels={"app": "web"}))
        run.place_all()
    run.step(ReadingPublished(source, traffic([5e7, 9e7, 2e7, 8e7, 3e7, 1e7], 1015.0)))
    east = {"topology.kubernetes.io/zone": "east"}
    run.add(ours("in-the-east", cpu="100m", node_selector=east), ours("large", cpu="64"))
    run.place_all()
    run.add(ours("rejected", cpu="100m"))
    (*_, bind) = run.step(Turn())
    assert isinstance(bind, Bind)
    run.step(BindingEnded(bind.pod.uid, BindOutcome("node-3 does not answer")))
    run.clock.advance(seconds=30)
    run.place_all()
    run.add(ours("important", cpu="1500m", priority=100))
    actions = run.step(Turn())
    (evict,) = (each for each in actions if isinstance(each, Evict))
    run.step(EvictionEnded(evict.pod.uid, evict.victims))
    for victim in evict.victims:
        run.step(Deleted(victim))
    run.clock.advance(seconds=30)
    run.place_all()
    run.step(Modified(make_node("node-5", cpu="70", labels={"generation": "5"})))
    run.clock.advance(seconds=400)  # longer than any pod stays parked
    run.place_all()


def test_a_binding_that_was_not_applied_is_replayed(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run") as run:
        run.add(make_node("small", cpu="1"))
        run.listed()
        run.add(ours("first", cpu="1"))
        (*_, bind) = run.step(Turn())
        assert isinstance(bind, Bind)
        run.step(BindingEnded(bind.pod.uid, BindOutcome()))
        run.clock.advance(CONFIRMED_WITHIN_SECONDS)
        assert run.has_work()
        (look_up,) = run.step(Turn())
        assert isinstance(look_up, LookUpBinding)
        run.step(BindingLookedUp(bind.pod.uid, BindOutcome("it has no node")))
        run.clock.advance(5)
        run.place_all()
    made = run.replayed()
    assert (made.differences, run.nodes) == ((), ["small", "small"])


def test_turns_of_an_older_scheduler_that_looked_up_no_bindings_are_replayed(
    tmp_path: Path,
) -> None:
    with RecordedRun(tmp_path / "run") as run:
        run.add(make_node("large", cpu="64"))
        run.listed()
        for number in range(9):
            run.add(ours(f"web-{number}", cpu="1"))
            (*_, bind) = run.step(Turn())
            assert isinstance(bind, Bind)
            run.step(BindingEnded(bind.pod.uid, BindOutcome()))
            run.clock.advance(CONFIRMED_WITHIN_SECONDS)
    made = run.replayed()
    assert (made.differences, made.decision_count) == ((), 9)


@pytest.mark.parametrize("hashes_names", PLAIN_AND_HASHED)
def test_every_decision_comes_out_the_same(tmp_path: Path, hashes_names: bool) -> None:
    with RecordedRun(tmp_path / "run", WITH_TRAFFIC, hashes_names=hashes_names) as run:
        a_busy_hour(run)
    made = run.replayed()
    assert (made.differences, made.warnings) == ((), ())
    assert made.decision_count == len(run.nodes) > 16
    assert len(set(run.nodes)) == 7  # each node was chosen, and sometimes none


def test_scores_of_plugins_add_up_to_the_totals(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run", WITH_TRAFFIC) as run:
        a_busy_hour(run)
    with Recording(run.file) as recording:
        scored = [
            each for step in recording.steps([None]) for each in step.decisions if each.scores
        ]
    assert len(scored) > 10
    for each in scored:
        assert [sum(column) for column in zip(*each.scores.values(), strict=True)] == each.totals


def test_hashed_decisions_name_the_hashed_nodes(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run", WITH_TRAFFIC, hashes_names=True) as run:
        a_busy_hour(run)
    with Recording(run.file) as recording:
        decided = [each.node for step in recording.steps([None]) for each in step.decisions]
    one_for_one = set(zip(run.nodes, decided, strict=True))
    assert len(one_for_one) == 7
    assert not [new for old, new in one_for_one if old is not None and new == old]


def claimed(name: str, claim: str) -> Pod:
    pod = ours(name, cpu="100m")
    volume = Volume(name="data", persistent_volume_claim=ClaimSource(claim))
    return replace(pod, spec=replace(pod.spec, volumes=[volume]))


@pytest.mark.parametrize("hashes_names", PLAIN_AND_HASHED)
def test_volumes_are_chosen_and_reserved_again(tmp_path: Path, hashes_names: bool) -> None:
    storage_class = StorageClass(
        ObjectMeta("local"), "kubernetes.io/no-provisioner", "WaitForFirstConsumer"
    )
    with RecordedRun(tmp_path / "run", hashes_names=hashes_names) as run:
        run.add(make_node("one"), make_node("two"), storage_class)
        for number, size in enumerate(("3Gi", "1Gi", "2Gi")):
            spec = PersistentVolumeSpec(
                capacity={"storage": size},
                access_modes=["ReadWriteOnce"],
                storage_class_name="local",
            )
            meta = ObjectMeta(f"volume-{number}", uid=f"v{number}", resource_version="1")
            run.add(PersistentVolume(meta, spec, PersistentVolumeStatus("Available")))
            meta = ObjectMeta(f"claim-{number}", "default", f"c{number}", "1")
            wanted = PersistentVolumeClaimSpec(["ReadWriteOnce"], storage_class_name="local")
            run.add(PersistentVolumeClaim(meta, wanted))
        run.listed()
        for number in range(3):
            run.add(claimed(f"db-{number}", f"claim-{number}"))
        run.add(claimed("fourth", "claim-9"))
        run.place_all()
    made = run.replayed()
    assert (made.differences, made.decision_count) == ((), 4)
    assert run.nodes.count(None) == 1


class AllEqual:
    """Whoever is ready first has the first turn."""

    name = "AllEqual"

    def sort_key(self, queued: Any) -> int:
        return 0


def test_look_that_moves_pods_is_replayed_where_it_was(tmp_path: Path) -> None:
    sorting = {"enabled": [{"name": "AllEqual"}], "disabled": [{"name": "*"}]}
    profile = {"schedulerName": "lowtide", "plugins": {"queueSort": sorting}}
    plugins = {"AllEqual": AllEqual}
    with RecordedRun(tmp_path / "run", {**CONFIG, "profiles": [profile]}, plugins) as run:
        run.listed()
        run.add(ours("first"))
        run.place_all()
        run.add(make_node("one"))
        run.clock.advance(seconds=30)
        assert run.has_work()  # which puts the first in front of the second
        run.add(ours("second"))
        run.place_all()
    with Recording(run.file) as recording:
        pods = [each.pod for step in recording.steps([]) for each in step.decisions]
    assert pods == ["default/first", "default/first", "default/second"]
    assert run.replayed(plugins=plugins).differences == ()


class Groups:
    """Lets pods go two by two."""

    name = "Groups"

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def permit(self, pod: Pod, node_name: str, nodes: Nodes) -> Allow | Reject | Wait:
        if not self._waiting:
            self._waiting.append(pod.uid)
            return Wait(seconds=20)
        return Allow(also=frozenset([self._waiting.pop()]))


def test_pods_that_wait_are_let_go_and_given_up_at_the_same_times(tmp_path: Path) -> None:
    profile = {"schedulerName": "lowtide", "plugins": {"permit": {"enabled": [{"name": "Groups"}]}}}
    plugins = {"Groups": Groups}
    config = {**CONFIG, "profiles": [profile]}
    with RecordedRun(tmp_path / "run", config, plugins) as run:
        run.add(make_node("one"))
        run.listed()
        run.add(*(ours(f"pod-{number}") for number in range(3)))
        run.place_all()
        run.clock.advance(seconds=25)
        run.place_all()
    made = run.replayed(plugins=plugins)
    assert made.differences == ()
    assert run.nodes == ["one", "one", "one", None]


def test_other_configuration_is_told_decision_by_decision(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run", WITH_TRAFFIC) as run:
        (source,) = (each for profile in run.profiles.values() for each in profile.readings)
        run.add(make_node("node-0"), make_node("node-1", cpu="3"))
        run.listed()
        run.step(ReadingPublished(source, traffic([1e8, 1e7], 1000.0)))
        run.add(ours("web", cpu="100m"))
        run.place_all()
    other = tmp_path / "other.yaml"
    other.write_text(json.dumps(CONFIG))
    made = run.replayed(other)
    (difference,) = made.differences
    assert (difference.recorded_node, difference.replayed_node) == ("node-1", "node-0")
    assert (difference.pod, difference.attempt) == ("default/web", 1)
    assert difference.first_plugin == "NetworkTraffic"
    assert made.warnings == ("run: nothing reads the recorded TrafficRequest",)


def test_configuration_for_other_pods_is_rejected(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run") as run:
        run.listed()
    other = tmp_path / "other.yaml"
    other.write_text(json.dumps({**CONFIG, "profiles": [{"schedulerName": "theirs"}]}))
    with pytest.raises(RecordingError) as error:
        run.replayed(other)
    assert str(error.value) == (
        "run: was recorded for the schedulerName lowtide, and "
        f"{other} has a profile for theirs only"
    )


def test_differences_are_kept_up_to_an_amount_and_all_are_counted(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run") as run:
        pass
    decision = DecisionForm(pod="long" * 250_000, uid="u", scheduler_name="lowtide", attempt=1)
    replay = Replay(run.machine, with_reasons=True)
    for line in range(2, 32):
        replay.take(Step(line, 1.0, Listed("Pod"), (decision,)))
    assert replay.different_count == 30
    assert [each.line for each in replay.differences] == [*range(2, 11)]


def test_decision_that_one_side_lacks_is_told(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run") as run:
        run.add(make_node("one"))
        run.listed()
        run.add(ours("web"))
        run.machine.step(Turn(), run.clock())  # behind the recorder's back
        run.step(Turn())
    (difference,) = run.replayed().differences
    assert difference.what == "the recording has no such decision"
    assert (difference.recorded_node, difference.replayed_node) == (None, "one")


def test_salt_is_not_in_the_file(tmp_path: Path) -> None:
    with RecordedRun(tmp_path / "run", hashes_names=True) as run:
        run.add(make_node("zebra"))
        run.listed()
    with Recording(run.file) as recording:
        assert recording.header.names_are_hashed
        (first, *_) = recording.steps([])
    assert "zebra" not in str(first.event)
    assert HashedNames(b"").name("zebra") not in str(first.event)


def test_answers_of_extenders_and_what_was_held_for_them_are_replayed(tmp_path: Path) -> None:
    extender = {
        "urlPrefix": "http://127.0.0.1:9/",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "nodeCacheCapable": True,
    }
    with RecordedRun(tmp_path / "run", {**CONFIG, "extenders": [extender]}) as run:
        run.add(*(make_node(name) for name in ("one", "two", "three")))
        run.listed()
        run.add(ours("web", cpu="1"))
        (asked,) = run.step(Turn())
        assert isinstance(asked, AskExtenders)
        run.add(make_node("four"), ours("next", cpu="1"))  # held until the answer
        (asked,) = run.step(ExtendersAnswered(Filtered(("one", "three"), {"two": "is busy"})))
        assert isinstance(asked, AskExtenders)
        run.step(ExtendersAnswered(Priorities(({"one": 1, "three": 9},))))
        run.step(Turn())
        run.step(ExtendersAnswered(ExtenderFailed("no answer in 5 seconds")))
        run.clock.advance(seconds=30)
        run.step(Turn())
        run.step(ExtendersAnswered(Filtered(("four",))))
    made = run.replayed()
    assert (made.differences, made.decision_count) == ((), 2)
    assert run.nodes == ["three", "four"]
