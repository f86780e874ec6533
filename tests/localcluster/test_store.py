import random

import pytest

from lowtide.localcluster import Part, StatusError, Store, bind
from lowtide.localcluster.changes import Change
from lowtide.localcluster.documents import Json
from lowtide.localcluster.patches import PatchForm
from lowtide.localcluster.selectors import Selection
from lowtide.testing.clock import ManualClock


def pod(name: str = "p", **metadata: object) -> Json:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": containers}}


def names(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.type.value, change.item["metadata"]["name"]) for change in changes]


def test_create_fills_in_the_metadata(store: Store) -> None:
    before = store.version
    created = store.create("pods", pod())
    assert created["metadata"] == {
        "name": "p",
        "namespace": "default",
        "uid": created["metadata"]["uid"],
        "resourceVersion": str(before + 1),
        "generation": 1,
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    assert store.get("pods", "default", "p") is created


def test_the_same_seed_gives_the_same_names_and_uids(clock: ManualClock) -> None:
    first, second = (Store(clock=clock, chance=random.Random(7)) for _ in range(2))
    item = {"metadata": {"generateName": "web-"}, "spec": pod()["spec"]}
    created = first.create("pods", item)
    assert created == second.create("pods", item)
    assert created["metadata"]["name"].startswith("web-")
    assert len(created["metadata"]["name"]) == len("web-") + 5


@pytest.mark.parametrize(
    ("item", "namespace", "code", "message"),
    [
        pytest.param(pod("taken"), None, 409, 'pods "taken" already exists', id="a taken name"),
        pytest.param(pod(), "nope", 404, 'namespaces "nope" not found', id="a missing namespace"),
        pytest.param(
            {"metadata": {"name": "x"}},
            None,
            422,
            'Pod "x" is invalid: spec.containers: Required value',
            id="a pod without containers",
        ),
        pytest.param(
            pod(namespace="default"),
            "kube-system",
            400,
            "the namespace of the provided object does not match the namespace sent on the "
            "request: 'default' is not 'kube-system'",
            id="another namespace than the request's",
        ),
        pytest.param(
            {"spec": {}},
            None,
            422,
            'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
            id="no name",
        ),
    ],
)
def test_create_rejects(
    store: Store, item: Json, namespace: str | None, code: int, message: str
) -> None:
    store.create("pods", pod("taken"))
    with pytest.raises(StatusError) as rejected:
        store.create("pods", item, namespace=namespace)
    assert (rejected.value.code, rejected.value.message) == (code, message)


def test_create_rejects_an_upper_case_name(store: Store) -> None:
    with pytest.raises(StatusError, match=r'^Pod "UP" is invalid: metadata\.name: Invalid value'):
        store.create("pods", pod("UP"))


def test_update_with_a_stale_version_conflicts(store: Store) -> None:
    first = store.create("nodes", {"metadata": {"name": "n"}})
    store.patch("nodes", "", "n", {"metadata": {"labels": {"a": "1"}}})
    with pytest.raises(StatusError) as rejected:
        store.update("nodes", first)
    assert rejected.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Operation cannot be fulfilled on nodes "n": the object has been modified; '
        "please apply your changes to the latest version and try again",
        "reason": "Conflict",
        "details": {"name": "n", "kind": "nodes"},
        "code": 409,
    }


def test_an_update_that_changes_nothing_keeps_the_version(store: Store) -> None:
    created = store.create("nodes", {"metadata": {"name": "n"}})
    assert store.update("nodes", created) is created


def test_main_and_status_are_written_apart(store: Store) -> None:
    created = store.create("pods", pod())
    changed = {**created, "status": {"phase": "Failed"}}
    changed["metadata"] = {**created["metadata"], "labels": {"a": "1"}}
    main = store.update("pods", changed)
    assert (main["status"]["phase"], main["metadata"]["labels"]) == ("Pending", {"a": "1"})
    status = store.update(
        "pods", {**main, "spec": {}, "status": {"phase": "Failed"}}, part=Part.STATUS
    )
    assert (status["status"], status["spec"]) == ({"phase": "Failed"}, created["spec"])


def test_a_changed_spec_raises_the_generation(store: Store) -> None:
    spec = {
        "selector": {"matchLabels": {"a": "1"}},
        "template": {"metadata": {"labels": {"a": "1"}}, "spec": pod()["spec"]},
    }
    store.create("deployments", {"metadata": {"name": "d"}, "spec": spec})
    labelled = store.patch("deployments", "default", "d", {"metadata": {"labels": {"x": "y"}}})
    scaled = store.patch("deployments", "default", "d", {"spec": {"replicas": 4}})
    assert [item["metadata"]["generation"] for item in (labelled, scaled)] == [1, 2]


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param({"metadata": {"uid": "other"}}, 422, id="another uid"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, 409, id="a stale version"),
        pytest.param({"spec": {"nodeName": "n"}}, 422, id="a node name"),
        pytest.param({"spec": {"schedulingGates": [{"name": "g"}]}}, 422, id="a new gate"),
    ],
)
def test_patch_rejects(store: Store, patch: Json, code: int) -> None:
    before = store.create("pods", pod())
    with pytest.raises(StatusError) as rejected:
        store.patch("pods", "default", "p", patch, form=PatchForm.MERGE)
    assert rejected.value.code == code
    assert store.get("pods", "default", "p") is before


def test_what_was_handed_out_never_changes(store: Store) -> None:
    item = pod()
    created = store.create("pods", item)
    item["spec"]["containers"][0]["name"] = "changed"
    store.patch("pods", "default", "p", {"metadata": {"labels": {"a": "1"}}})
    assert (created["spec"]["containers"][0]["name"], "labels" in created["metadata"]) == (
        "c",
        False,
    )


def test_an_unbound_pod_is_deleted_at_once(store: Store) -> None:
    store.create("pods", pod())
    since = store.version
    store.delete("pods", "default", "p")
    assert store.find("pods", "default", "p") is None
    assert names(store.changes_since("pods", since)) == [("DELETED", "p")]


def test_a_bound_pod_is_marked_and_goes_with_no_grace(store: Store, clock: ManualClock) -> None:
    store.create("pods", pod())
    bind_to_a = {"metadata": {"name": "p"}, "target": {"name": "a"}}
    bind(store, bind_to_a, namespace="default", clock=clock)
    marked = store.delete("pods", "default", "p")["metadata"]
    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == (
        "2023-11-14T22:13:50Z",
        30,
    )
    store.delete("pods", "default", "p", grace_period_seconds=0)
    assert store.find("pods", "default", "p") is None


def test_a_finalizer_holds_an_object_until_it_is_taken_away(store: Store) -> None:
    store.create("leases", {"metadata": {"name": "l", "finalizers": ["x/y"]}})
    assert "deletionTimestamp" in store.delete("leases", "default", "l")["metadata"]
    store.patch("leases", "default", "l", {"metadata": {"finalizers": None}}, form=PatchForm.MERGE)
    assert store.find("leases", "default", "l") is None


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        pytest.param({"uid": "other"}, 409, id="another uid"),
        pytest.param({"resource_version": "1"}, 409, id="another version"),
    ],
)
def test_delete_minds_preconditions(store: Store, conditions: dict[str, str], code: int) -> None:
    store.create("pods", pod())
    with pytest.raises(StatusError) as rejected:
        store.delete("pods", "default", "p", **conditions)  # type: ignore[arg-type]
    assert rejected.value.code == code
    assert store.find("pods", "default", "p") is not None


def test_a_namespace_takes_its_objects_along(store: Store) -> None:
    store.create("namespaces", {"metadata": {"name": "team"}})
    store.create("pods", pod(), namespace="team")
    assert store.get("serviceaccounts", "team", "default")
    store.delete("namespaces", "", "team")
    assert [store.items(plural, Selection("team")) for plural in ("pods", "serviceaccounts")] == [
        [],
        [],
    ]
    with pytest.raises(StatusError, match='"default" is forbidden: this namespace may not be del'):
        store.delete("namespaces", "", "default")


def test_history_tells_each_change_once(store: Store) -> None:
    store.create("pods", pod("a"))
    since = store.version
    store.create("pods", pod("b"))
    store.create("nodes", {"metadata": {"name": "n"}})
    store.patch("pods", "default", "a", {"metadata": {"labels": {"x": "y"}}})
    store.delete("pods", "default", "b")
    assert names(store.changes_since("pods", since)) == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]


@pytest.mark.parametrize("way", ["compaction", "overflow"])
def test_a_version_before_the_history_is_gone(clock: ManualClock, way: str) -> None:
    store = Store(clock=clock, chance=random.Random(1), history_length=3)
    old = store.version
    if way == "compaction":
        store.create("pods", pod())
        store.compact()
    else:
        for index in range(4):
            store.create("pods", pod(f"p{index}"))
    with pytest.raises(StatusError) as rejected:
        store.changes_since("pods", old)
    assert (rejected.value.code, rejected.value.reason) == (410, "Expired")
    assert store.changes_since("pods", store.version) == []


def test_records_can_be_listed_as_they_were(store: Store) -> None:
    store.create("pods", pod("a"))
    store.create("pods", pod("b"))
    then, before = store.version, store.items("pods")
    store.delete("pods", "default", "a")
    store.create("pods", pod("c"))
    store.patch("pods", "default", "b", {"metadata": {"labels": {"x": "y"}}})
    assert [record.item for record in store.records("pods", Selection(), then)] == before


def test_a_gate_is_told_and_taken_back(store: Store) -> None:
    gated = pod()
    gated["spec"]["schedulingGates"] = [{"name": "g"}]
    created = store.create("pods", gated)
    assert [one["reason"] for one in created["status"]["conditions"]] == ["SchedulingGated"]
    patch = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    free = store.patch("pods", "default", "p", patch, form=PatchForm.JSON)
    assert (free["spec"]["schedulingGates"], free["status"]["conditions"]) == ([], [])


def test_orphaned_dependents_stay(store: Store) -> None:
    owner = store.create("leases", {"metadata": {"name": "owner"}})
    reference = {"kind": "Lease", "name": "owner", "uid": owner["metadata"]["uid"]}
    store.create("pods", pod(ownerReferences=[reference]))
    store.delete("leases", "default", "owner", keeps_dependents=True)
    assert store.get("pods", "default", "p")["metadata"]["ownerReferences"] == []
