from collections.abc import Iterator

import pytest

from lowtide.localcluster import Store, bind
from lowtide.localcluster.controllers import Controllers
from lowtide.localcluster.documents import Json
from lowtide.testing.clock import ManualClock

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
    "spec": {"schedulerName": "lowtide", "containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture
def controllers(store: Store, clock: ManualClock) -> Iterator[Controllers]:
    working = Controllers(store, clock)
    working.start()
    yield working
    working.stop()


def deployment(replicas: int) -> Json:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
    }
    return {"metadata": {"name": "web"}, "spec": spec}


def place_all(store: Store, clock: ManualClock) -> None:
    for pod in store.items("pods"):
        if not pod["spec"].get("nodeName"):
            binding = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"name": "n"}}
            bind(store, binding, namespace="default", clock=clock)


def test_a_deployment_gets_its_pods(store: Store, controllers: Controllers) -> None:
    store.create("deployments", deployment(3))
    controllers.settle()
    (replica_set,) = store.items("replicasets")
    name = replica_set["metadata"]["name"]
    template_hash = name.removeprefix("web-")
    pods = store.items("pods")
    assert len(pods) == 3
    for pod in pods:
        metadata = pod["metadata"]
        assert metadata["name"].startswith(f"{name}-")
        assert len(metadata["name"]) == len(name) + 6
        assert metadata["labels"] == {"app": "web", "pod-template-hash": template_hash}
        assert metadata["annotations"] == {"note": "x"}
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": name,
                "uid": replica_set["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


def test_status_follows_the_pods(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    store.create("deployments", deployment(2))
    controllers.settle()
    waiting = store.get("deployments", "default", "web")["status"]
    assert {key: value for key, value in waiting.items() if key != "conditions"} == {
        "replicas": 2,
        "updatedReplicas": 2,
        "unavailableReplicas": 2,
        "observedGeneration": 1,
    }
    place_all(store, clock)
    controllers.settle()
    ready = store.get("deployments", "default", "web")["status"]
    conditions = [(one["type"], one["status"], one["reason"]) for one in ready.pop("conditions")]
    assert ready == {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
    assert conditions == [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]


def test_scaling_down_takes_unbound_pods_first(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    store.create("deployments", deployment(2))
    controllers.settle()
    place_all(store, clock)
    store.patch("deployments", "default", "web", {"spec": {"replicas": 5}})
    controllers.settle()
    store.patch("deployments", "default", "web", {"spec": {"replicas": 2}})
    controllers.settle()
    assert [pod["spec"].get("nodeName") for pod in store.items("pods")] == ["n", "n"]


def test_a_deleted_pod_is_replaced(store: Store, controllers: Controllers) -> None:
    store.create("deployments", deployment(2))
    controllers.settle()
    before = {pod["metadata"]["name"] for pod in store.items("pods")}
    store.delete("pods", "default", min(before))
    controllers.settle()
    after = {pod["metadata"]["name"] for pod in store.items("pods")}
    assert (len(after), len(after & before)) == (2, 1)


def test_a_new_template_replaces_the_pods_once_they_are_ready(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    store.create("deployments", deployment(2))
    controllers.settle()
    place_all(store, clock)
    controllers.settle()
    containers = [{"name": "c", "image": "newer"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    store.patch("deployments", "default", "web", patch)
    controllers.settle()
    assert len(store.items("pods")) == 4
    place_all(store, clock)
    controllers.settle()
    images = [pod["spec"]["containers"][0]["image"] for pod in store.items("pods")]
    assert images == ["newer", "newer"]


def test_deleting_a_deployment_cascades(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    store.create("deployments", deployment(3))
    controllers.settle()
    place_all(store, clock)
    controllers.settle()
    store.delete("deployments", "default", "web")
    controllers.settle()
    assert (store.items("replicasets"), store.items("pods")) == ([], [])


def test_what_existed_before_the_start_is_taken_up(store: Store, clock: ManualClock) -> None:
    store.create("deployments", deployment(2))
    working = Controllers(store, clock)
    working.start()
    working.settle()
    assert len(store.items("pods")) == 2
