"""Volumes reserved for pods: other pods see them taken until the binding has failed."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.scheduler.conftest import OUTCOME_ERROR, Bench, binds, conditions, default_profile

from lowtide.framework.plugin import Allow, Nodes, Pod, PodRejection, Rejection, Reserved, Wait
from lowtide.objects.events import Added, Deleted, Modified
from lowtide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from lowtide.scheduler.events import PermitAnswered, Turn
from lowtide.testing import make_node, make_pod

NOTHING_LEFT = (
    "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
)


def using(name: str) -> Pod:
    source = {"persistentVolumeClaim": {"claimName": f"{name}-data"}}
    return make_pod(name, spec={"volumes": [{"name": "data", **source}]})


def claim(name: str, **spec: Any) -> PersistentVolumeClaim:
    meta = {"name": f"{name}-data", "namespace": "default", "uid": name, "resourceVersion": "1"}
    given = {"metadata": meta, "spec": {"storageClassName": "local", **spec}}
    return msgspec.convert(given, PersistentVolumeClaim)


def volume(version: str = "1", promised: str = "") -> PersistentVolume:
    reference = {"namespace": "default", "name": f"{promised}-data", "uid": promised}
    spec = {"storageClassName": "local", "claimRef": reference if promised else None}
    meta = {"name": "v", "resourceVersion": version}
    status = {"phase": "Available"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, PersistentVolume)


LOCAL = msgspec.convert(
    {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    StorageClass,
)


def bench_with_one_volume() -> Bench:
    bench = Bench(make_node("node-a"))
    bench.give(Added(LOCAL), Added(volume()), Added(claim("one")), Added(claim("two")))
    return bench


def rejections(bench: Bench) -> list[str]:
    return [message.partition(" no new claims")[0] for _, message in conditions(bench.actions)]


def test_a_volume_is_given_to_one_pod_only() -> None:
    bench = bench_with_one_volume()
    bench.give(Added(using("one")), Added(using("two")))
    assert binds(bench.take_turns()) == [("one", "node-a")]
    assert rejections(bench) == [NOTHING_LEFT]
    (reserved,) = bench.machine.state.known_objects.assumed("default/one")
    assert reserved.spec.claim_ref == volume(promised="one").spec.claim_ref
    assert reserved.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_volume_is_free_again_when_the_binding_fails_and_that_wakes_who_waits() -> None:
    bench = bench_with_one_volume()
    bench.give(Added(using("one")), Added(using("two")))
    bench.take_turns()
    bench.end("one", OUTCOME_ERROR)
    assert bench.machine.state.objects(PersistentVolume)["", "v"] == volume()
    assert bench.machine.state.known_objects.assumed("default/one") == ()
    # Pod one met an error, and is not taken before its time.
    assert binds(bench.take_turns()) == [("two", "node-a")]


def test_after_the_binding_the_watch_has_the_word() -> None:
    bench = bench_with_one_volume()
    bench.place(using("one"))
    bench.give(Modified(volume("2", promised="one")))
    bench.end("one")
    bench.give(Added(using("two")))
    assert binds(bench.take_turns()) == []
    bench.give(Modified(volume("3")))
    bench.pass_time(20)
    assert binds(bench.take_turns()) == [("two", "node-a")]


def test_after_the_binding_nothing_is_left_to_take_back() -> None:
    bench = bench_with_one_volume()
    bench.place(using("one"))
    (reserved,) = bench.machine.state.known_objects.assumed("default/one")
    bench.end("one")
    assert bench.machine.state.known_objects.assumed("default/one") == ()
    assert bench.machine.state.objects(PersistentVolume)["", "v"] == reserved


def test_who_fails_late_leaves_the_next_pod_its_volume() -> None:
    bench = bench_with_one_volume()
    bench.place(using("one"))
    bench.give(Modified(volume("2")))
    bench.place(using("two"))
    bench.end("one", OUTCOME_ERROR)
    bench.pass_time(20)
    assert binds(bench.take_turns()) == []


def test_a_verdict_from_before_a_reservation_is_not_kept() -> None:
    bench = bench_with_one_volume()
    bench.give(Added(using("two")), Added(using("one")), Turn(), Turn())
    assert binds(bench.actions) == [("two", "node-a")]
    assert rejections(bench) == [NOTHING_LEFT]


def test_a_claim_that_goes_between_decision_and_reservation_rejects_the_pod() -> None:
    """Which cannot be in one step; a plugin asked about it says so all the same."""
    bench = bench_with_one_volume()
    plugin = next(
        plugin
        for plugin in bench.machine.profiles["lowtide"].plugins_for_point("reserve")
        if plugin.name == "VolumeBinding"
    )
    bench.give(Deleted(claim("one")))
    answer = plugin.reserve(using("one"), "node-a", bench.machine.state.nodes())
    assert answer == PodRejection('persistentvolumeclaim "one-data" not found')


class OneVolumeAtATime:
    """Reserves a volume that does not exist yet, and rejects pods while there is any."""

    name = "OneVolumeAtATime"
    kinds = (PersistentVolume,)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        if nodes.objects(PersistentVolume):
            yield Rejection(nodes.is_named(*nodes.names), "there is a volume")

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Reserved:
        return Reserved([msgspec.convert({"metadata": {"name": pod.name}}, PersistentVolume)])


def test_a_new_object_is_gone_when_the_binding_fails_and_that_wakes_who_waits() -> None:
    bench = Bench(make_node("node-a"), profiles=[default_profile(OneVolumeAtATime())])
    bench.give(Added(make_pod("one")), Added(make_pod("two")))
    assert binds(bench.take_turns()) == [("one", "node-a")]
    assert rejections(bench) == ["0/1 nodes are available: 1 there is a volume."]
    bench.end("one", OUTCOME_ERROR)
    assert bench.machine.state.objects(PersistentVolume) == {}
    assert binds(bench.take_turns()) == [("two", "node-a")]


def test_pods_that_share_a_claim_go_where_its_volume_is_being_made() -> None:
    bench = Bench(make_node("node-a"), make_node("node-b"), make_node("node-c"))
    made = msgspec.structs.replace(LOCAL, provisioner="csi.example.com")
    bench.give(Added(made), Added(claim("one")))
    first = bench.place(using("one"))
    source = {"persistentVolumeClaim": {"claimName": "one-data"}}
    for name in ("two", "three"):
        pod = make_pod(name, spec={"volumes": [{"name": "data", **source}]})
        assert bench.place(pod) == first


class RemembersPorts:
    """Remembers for each pod what it has taken for it, and writes down where that came back."""

    name = "RemembersPorts"

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int | None]] = []
        self._next = 30000

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Reserved:
        self._next += 1
        return Reserved(memory=self._next)

    def permit(
        self, pod: Pod, node_name: str, nodes: Nodes, *, memory: int | None = None
    ) -> Allow | Wait:
        self.told.append(("permit", pod.name, memory))
        return Wait(60.0) if "waits" in pod.labels else Allow()

    def unreserve(self, pod: Pod, node_name: str, *, memory: int | None = None) -> None:
        self.told.append(("unreserve", pod.name, memory))


class RejectsReservations:
    name = "RejectsReservations"

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> PodRejection:
        return PodRejection("not here")


def test_what_a_plugin_remembers_of_a_pod_is_handed_to_it_again_for_that_pod() -> None:
    plugin = RemembersPorts()
    bench = Bench(make_node("node-a"), profiles=[default_profile(plugin)])
    bench.place(make_pod("one"))
    bench.place(make_pod("two"))
    bench.end("one", OUTCOME_ERROR)
    assert plugin.told == [
        ("permit", "one", 30001),
        ("permit", "two", 30002),
        ("unreserve", "one", 30001),
    ]


def test_a_pod_that_waits_is_remembered_as_long() -> None:
    plugin = RemembersPorts()
    bench = Bench(make_node("node-a"), profiles=[default_profile(plugin)])
    bench.give(Added(make_pod("one", labels={"waits": ""})), Turn())
    bench.give(PermitAnswered("default/one", plugin.name, "it has waited in vain"))
    assert plugin.told == [("permit", "one", 30001), ("unreserve", "one", 30001)]


def test_nothing_is_remembered_where_another_plugin_rejected_the_pod_before() -> None:
    plugin = RemembersPorts()
    bench = Bench(make_node("node-a"), profiles=[default_profile(RejectsReservations(), plugin)])
    bench.give(Added(make_pod("one")), Turn())
    assert plugin.told == [("unreserve", "one", None)]


class ReservesAsBefore:
    name = "ReservesAsBefore"

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Any:
        return [LOCAL]


def test_an_answer_that_is_no_reservation_is_reported() -> None:
    bench = Bench(make_node("node-a"), profiles=[default_profile(ReservesAsBefore())])
    bench.give(Added(make_pod("one")), Turn())
    ((reason, message),) = conditions(bench.actions)
    assert (reason, bench.lengths) == ("SchedulerError", {"backoff": 1})
    assert message.startswith("ReservesAsBefore.reserve answers with [StorageClass(")
    assert message.endswith("; it must be Reserved(...), PodRejection(reason) or None")


class Reserves:
    """Its answer is made anew each time."""

    name = "Reserves"
    kinds = (StorageClass,)

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def reserve(self, pod: Pod, node_name: str, nodes: Nodes) -> Any:
        return self._answer()


def breaks() -> Iterator[Any]:
    yield LOCAL
    raise RuntimeError("it has stumbled")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(
            lambda: Reserved(objects=5),  # type: ignore[arg-type]
            "'int' object is not iterable",
            id="is no collection",
        ),
        pytest.param(lambda: Reserved(objects=["x"]), "'x'", id="has no metadata"),
        pytest.param(lambda: Reserved(objects=[make_pod()]), "Pod(", id="is a pod"),
        pytest.param(lambda: Reserved(objects=breaks()), "it has stumbled", id="breaks halfway"),
        pytest.param(lambda: PodRejection(5), "PodRejection(reason=5", id="has no words"),  # type: ignore[arg-type]
    ],
)
def test_what_is_reserved_is_reported_if_it(answer: Callable[[], Any], error: str) -> None:
    bench = Bench(make_node("node-a"), profiles=[default_profile(Reserves(answer))])
    bench.give(Added(make_pod("one")), Turn())
    ((reason, message),) = conditions(bench.actions)
    assert (reason, bench.lengths, bench.on_node("node-a")) == (
        "SchedulerError",
        {"backoff": 1},
        {},
    )
    assert message.startswith("Reserves.reserve ")
    assert error in message
    assert bench.machine.state.objects(StorageClass) == {}
