"""Objects as watches say and as they are assumed: who sees what, and when that ends."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from lowtide.cluster.known_objects import KnownObjects
from lowtide.objects.storage import PersistentVolume, PersistentVolumeClaim


def volume(phase: str, version: str = "1", name: str = "v") -> PersistentVolume:
    meta = {"name": name, "resourceVersion": version}
    return msgspec.convert({"metadata": meta, "status": {"phase": phase}}, PersistentVolume)


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[Any, Any, bool]] = []

    def __call__(self, before: Any, after: Any, is_other: bool) -> None:
        self.heard.append((before, after, is_other))


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def known(listener: Listener) -> KnownObjects:
    known = KnownObjects(listener)
    known.put(volume("Available"))
    known.assume("pod", [volume("Assumed")])
    return known


def contents(known: KnownObjects) -> dict[str, Any]:
    return {name: value for name, value in vars(known).items() if isinstance(value, dict)}


def seen(known: KnownObjects) -> str:
    return known.objects_by_key(PersistentVolume)["", "v"].status.phase


def test_what_is_assumed_is_seen_and_what_the_watch_said_is_kept(known: KnownObjects) -> None:
    assert seen(known) == "Assumed"
    assert known.objects_in(PersistentVolume, "")["v"].status.phase == "Assumed"
    assert known.watched(PersistentVolume, "", "v") == volume("Available")
    assert known.assumed("pod") == (volume("Assumed"),)


def test_the_same_version_again_ends_no_assumption(known: KnownObjects) -> None:
    assert not known.put(volume("Available"))
    assert seen(known) == "Assumed"


def test_a_newer_version_ends_it(known: KnownObjects) -> None:
    assert known.put(volume("Bound", "2"))
    assert seen(known) == "Bound"
    assert known.forget("pod") == ()
    assert seen(known) == "Bound"


def test_a_newer_version_that_says_what_was_assumed_changes_nothing(known: KnownObjects) -> None:
    assert not known.put(volume("Assumed", "2"))


def test_an_assumption_that_is_taken_back_shows_what_the_watch_said(known: KnownObjects) -> None:
    ((_, watched),) = known.forget("pod")
    assert watched == volume("Available")
    assert seen(known) == "Available"
    assert known.assumed("pod") == ()


def test_an_assumption_that_is_settled_stays_until_the_watch_tells_more(
    known: KnownObjects,
) -> None:
    known.settle("pod")
    assert known.forget("pod") == ()
    assert seen(known) == "Assumed"
    known.put(volume("Bound", "2"))
    assert seen(known) == "Bound"


def test_two_plugins_may_reserve_for_one_pod(known: KnownObjects) -> None:
    known.put(volume("Available", name="w"))
    known.assume("pod", [volume("Assumed", name="w")])
    assert [each.name for each in known.assumed("pod")] == ["v", "w"]
    assert [each.name for _, each in known.forget("pod")] == ["v", "w"]


def test_who_fails_late_takes_back_nothing_that_is_assumed_for_another_pod(
    known: KnownObjects,
) -> None:
    known.put(volume("Available", "2"))
    known.assume("other", [volume("Other", "2")])
    assert known.forget("pod") == ()
    assert seen(known) == "Other"
    assert known.forget("other") == ((volume("Other", "2"), volume("Available", "2")),)
    assert seen(known) == "Available"


@pytest.mark.parametrize(
    ("fails", "left"),
    [
        pytest.param("pod", "Other", id="the first fails"),
        pytest.param("other", "Assumed", id="the second fails"),
    ],
)
def test_what_two_pods_share_stays_assumed_for_one_when(
    known: KnownObjects, fails: str, left: str
) -> None:
    known.assume("other", [volume("Other")])
    assert seen(known) == "Other"
    known.forget(fails)
    assert seen(known) == left
    known.forget("pod")
    known.forget("other")
    assert seen(known) == "Available"


def test_a_new_object_that_is_taken_back_is_gone(known: KnownObjects, listener: Listener) -> None:
    new = volume("Assumed", name="new")
    known.assume("pod", [new])
    assert known.forget("pod") == ((volume("Assumed"), volume("Available")), (new, None))
    assert list(known.objects_by_key(PersistentVolume)) == [("", "v")]
    assert list(known.objects_in(PersistentVolume, "")) == ["v"]
    assert listener.heard[-1] == (new, None, True)


def test_a_new_object_that_is_assumed_twice_stays_until_both_are_taken_back(
    known: KnownObjects,
) -> None:
    first, second = volume("First", name="new"), volume("Second", name="new")
    known.assume("pod", [first])
    known.assume("other", [second])
    assert known.forget("other") == ((second, first),)
    assert known.objects_by_key(PersistentVolume)["", "new"] == first
    known.forget("pod")
    assert ("", "new") not in known.objects_by_key(PersistentVolume)


def test_a_new_object_that_the_watch_has_brought_stays(known: KnownObjects) -> None:
    known.assume("pod", [volume("Assumed", name="new")])
    known.put(volume("Bound", "2", name="new"))
    known.forget("pod")
    assert known.objects_by_key(PersistentVolume)["", "new"] == volume("Bound", "2", name="new")


def test_what_a_bound_pod_shares_stays_assumed_when_the_other_fails(known: KnownObjects) -> None:
    known.assume("other", [volume("Other")])
    known.settle("pod")
    known.forget("other")
    assert seen(known) == "Assumed"


def test_nothing_is_kept_of_a_namespace_whose_objects_are_gone(known: KnownObjects) -> None:
    kept = deepcopy(contents(known))
    claim = msgspec.convert({"metadata": {"name": "c", "namespace": "n"}}, PersistentVolumeClaim)
    known.put(claim)
    known.remove(claim)
    assert contents(known) == {**kept, "_by_kind": {**kept["_by_kind"], PersistentVolumeClaim: {}}}


def test_an_object_that_goes_is_gone_whatever_is_assumed(known: KnownObjects) -> None:
    known.remove(volume("Available"))
    assert known.objects_by_key(PersistentVolume) == {}
    assert known.forget("pod") == ()
    assert known.watched(PersistentVolume, "", "v") is None


def test_every_change_is_told(known: KnownObjects, listener: Listener) -> None:
    known.forget("pod")
    known.put(volume("Available", "2"))
    known.remove(volume("Available"))
    told = [
        (before and before.status.phase, after and after.status.phase, is_other)
        for before, after, is_other in listener.heard
    ]
    assert told == [
        (None, "Available", True),
        ("Available", "Assumed", True),
        ("Assumed", "Available", True),
        ("Available", "Available", False),  # nobody can tell the versions apart
        ("Available", None, True),
    ]


def test_kinds_and_namespaces_are_kept_apart(known: KnownObjects) -> None:
    claim = msgspec.convert(
        {"metadata": {"name": "v", "namespace": "default"}}, PersistentVolumeClaim
    )
    known.put(claim)
    assert known.objects_in(PersistentVolumeClaim, "default") == {"v": claim}
    assert known.objects_in(PersistentVolumeClaim, "other") == {}
    assert known.objects_by_key(PersistentVolume) == {("", "v"): volume("Assumed")}


def test_nothing_is_assumed_if_one_object_has_no_name(known: KnownObjects) -> None:
    before = deepcopy(contents(known))
    with pytest.raises(AttributeError):
        known.assume("other", [volume("Other"), "no object"])
    assert contents(known) == before
    assert known.forget("other") == ()
