from collections.abc import Iterator

import pytest

from lowtide.localcluster import Store, bind
from lowtide.localcluster.controllers import Controllers
from lowtide.testing.clock import ManualClock

SPEC = {"containers": [{"name": "c", "image": "i"}]}
TO_N = {"metadata": {"name": "p"}, "target": {"name": "n"}}


@pytest.fixture
def controllers(store: Store, clock: ManualClock) -> Iterator[Controllers]:
    working = Controllers(store, clock)
    working.start()
    store.create("pods", {"metadata": {"name": "p"}, "spec": SPEC})
    yield working
    working.stop()


def test_a_bound_pod_runs_and_goes_when_deleted(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    bind(store, TO_N, namespace="default", clock=clock)
    controllers.settle()
    status = store.get("pods", "default", "p")["status"]
    assert (status["phase"], status["startTime"]) == ("Running", "2023-11-14T22:13:20Z")
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    store.delete("pods", "default", "p")
    assert store.find("pods", "default", "p") is not None
    controllers.settle()
    assert store.find("pods", "default", "p") is None


def test_a_pod_on_a_missing_node_waits_for_it(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    bind(store, TO_N, namespace="default", clock=clock)
    controllers.settle()
    assert store.get("pods", "default", "p")["status"]["phase"] == "Pending"
    store.create("nodes", {"metadata": {"name": "n"}})
    controllers.settle()
    assert store.get("pods", "default", "p")["status"]["phase"] == "Running"


def test_pods_go_with_their_node(
    store: Store, controllers: Controllers, clock: ManualClock
) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    bind(store, TO_N, namespace="default", clock=clock)
    controllers.settle()
    store.delete("nodes", "", "n")
    controllers.settle()
    assert store.items("pods") == []


def test_a_node_is_ready_unless_it_says_otherwise(store: Store, controllers: Controllers) -> None:
    store.create("nodes", {"metadata": {"name": "silent"}})
    broken = {"conditions": [{"type": "Ready", "status": "False"}]}
    store.create("nodes", {"metadata": {"name": "broken"}, "status": broken})
    controllers.settle()
    ready = {
        node["metadata"]["name"]: [one["status"] for one in node["status"]["conditions"]]
        for node in store.items("nodes")
    }
    assert ready == {"broken": ["False"], "silent": ["True"]}
