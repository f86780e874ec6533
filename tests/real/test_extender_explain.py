"""An extender behind the real kube-scheduler is asked why: a pod that is rejected, and one that is
placed, by the numbers that `lowtide decide` computes."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.extender_process import BY_LABEL, LABEL, Json, StartExtender
from tests.integration.conftest import Cluster
from tests.integration.test_explain import decided, lowtide, scores, state_of

from realparts.control_plane import ControlPlane
from realparts.process import wait_until

pytestmark = [pytest.mark.real("kube_scheduler"), pytest.mark.versions]

LACKS = f"node(s) did not have label {LABEL}"


@pytest.fixture
def cluster(
    control_plane: ControlPlane, namespace: str, scheduler_rights: None
) -> Iterator[Cluster]:
    def send(method: str, path: str, body: Any) -> Json:
        return control_plane.request(method, path, body)

    cluster = Cluster(send, control_plane.kubeconfig("lowtide"), namespace)
    yield cluster
    for name in cluster.node_names:
        control_plane.request("DELETE", f"/api/v1/nodes/{name}")


def by_label_and_room() -> Json:
    config = copy.deepcopy(BY_LABEL)
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"].append({"name": "NodeResourcesFit"})
    return config


def test_extender_says_why_kube_scheduler_placed_a_pod_there(
    cluster: Cluster,
    kube_scheduler: Callable[..., object],
    lowtide_extender: StartExtender,
    tmp_path: Path,
) -> None:
    for name, cpu in (("large", "8"), ("small", "2"), ("other", "8")):
        cluster.create_node(name, cpu=cpu)
    config = by_label_and_room()
    extender = lowtide_extender(config, cluster.kubeconfig)
    kube_scheduler(yaml.safe_dump(extender.kube_scheduler_config("asks")))

    def explained(name: str, *flags: str) -> Json:
        words = ("explain", f"{cluster.namespace}/{name}", f"--address={extender.url}")
        found: Json = json.loads(lowtide(*words, "--output=json", *flags))
        return found

    def placed(name: str) -> Json:
        """The newest record, when the extender has seen where the pod went."""
        node_name = cluster.wait_for_placement(name)
        wait_until(
            lambda: explained(name)["records"][0]["actual_node"] == node_name,
            timeout_seconds=10,
            what=f"the extender has seen {name} on {node_name}",
        )
        newest: Json = explained(name)["records"][0]
        return newest

    cluster.create_pod("web", cpu="700m", schedulerName="asks")
    said = f"0/3 nodes are available: 3 {LACKS}."
    # The first tries may come before kube-scheduler has seen that every node is ready.
    cluster.wait_for(
        lambda: any(
            each["note"].startswith(said) for each in cluster.events("web", "FailedScheduling")
        ),
        what="all nodes are rejected for their label",
    )
    rejected = explained("web", "--why-not=large")
    assert rejected["records"][0]["message"] == said
    assert rejected["why_not"]["rejections"] == [f"NodeLabel: all node do not have label {LABEL}"]
    assert [(each["plugin"], each["nodes"]) for each in rejected["remedies"]] == [("NodeLabel", 3)]

    for name in ("large", "small"):
        label = {"metadata": {"labels": {LABEL: "true"}}}
        cluster.send("PATCH", f"/api/v1/nodes/{name}", label)
    assert placed("web")["attempt"] > 1
    before = state_of(cluster)
    pod = cluster.create_pod("second", cpu="700m", schedulerName="asks")
    newest = placed("second")
    answer = decided(tmp_path, before, pod, config)
    assert (newest["extender_verb"], newest["node"]) == ("prioritize", "large")
    assert scores(newest) == answer["scores"]
    words = ("explain", f"{cluster.namespace}/second", f"--address={extender.url}")
    advised = f"{cluster.namespace}/second: large is advised, it is on {newest['actual_node']} ("
    assert lowtide(*words).startswith(advised)
    assert extender.count("lowtide_extender_neutral_answers_total") == 0
