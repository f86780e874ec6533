"""`lowtide explain` of an extender, on the embedded and on the real API server: the numbers that
`lowtide decide` computes for the same state, in words that are true of advice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.extender_process import StartExtender
from tests.integration.test_explain import decided, explained, lowtide, scores, state_of

from realparts.process import Process, wait_until

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}


def test_an_extender_explains_by_the_numbers_that_decide_computes(
    cluster: Any,
    configuration: Configuration,
    lowtide_scheduler: Start,
    lowtide_extender: StartExtender,
    tmp_path: Path,
) -> None:
    plugins = configuration()
    for name, cpu in (("large", "8"), ("medium", "4"), ("small", "2")):
        cluster.create_node(name, cpu=cpu)
    file = tmp_path / "answers.jsonl"
    extender = lowtide_extender(
        plugins, cluster.kubeconfig, flags=(f"--decisions-file={file}",)
    ).process
    said = {"urlPrefix": f"{extender.url}/scheduler", "nodeCacheCapable": True, **VERBS}
    lowtide_scheduler(configuration(extenders=[said]), cluster.kubeconfig)
    for name in ("first", "second"):
        before = state_of(cluster)
        pod = cluster.create_pod(name, cpu="700m")
        node_name = cluster.wait_for_placement(name)
        wait_until(
            lambda name=name: (
                explained(extender, cluster, name)["records"][0]["actual_node"] is not None
            ),
            timeout_seconds=10,
            what="the extender has seen where the pod went",
        )
        prioritized, filtered = explained(extender, cluster, name)["records"]
        answer = decided(tmp_path, before, pod, plugins)
        assert (prioritized["extender_verb"], filtered["extender_verb"]) == ("prioritize", "filter")
        assert prioritized["actual_node"] == node_name
        for record in (filtered, prioritized):
            assert record["node"] in answer["best"]
            assert scores(record) == answer["scores"]
            assert {each["node"]: each["total"] for each in record["best"]} == answer["total"]
    key = f"{cluster.namespace}/second"
    table = lowtide("explain", key, f"--address={extender.url}")
    words = f"{key}: {prioritized['node']} is advised, it is on {node_name} (asked to prioritize, "
    assert table.startswith(words)
    wait_until(
        lambda: file.exists() and len(file.read_text().splitlines()) == 4,
        timeout_seconds=10,
        what="the answers are written",
    )
    words = ("explain", key, f"--decisions-file={file}", "--output=json")
    written = json.loads(lowtide(*words))["records"]
    assert [scores(each) for each in written] == [scores(prioritized), scores(filtered)]


def test_a_pod_that_an_extender_rejects_is_told_what_would_make_it_fit(
    cluster: Any,
    configuration: Configuration,
    lowtide_scheduler: Start,
    lowtide_extender: StartExtender,
    tmp_path: Path,
) -> None:
    plugins = configuration()
    cluster.create_node("a", cpu="2")
    extender = lowtide_extender(plugins, cluster.kubeconfig).process
    said = {"urlPrefix": f"{extender.url}/scheduler", "nodeCacheCapable": True, **VERBS}
    without_filters = {
        "profiles": [
            {"schedulerName": "lowtide", "plugins": {"filter": {"disabled": [{"name": "*"}]}}}
        ]
    }
    lowtide_scheduler({**configuration(extenders=[said]), **without_filters}, cluster.kubeconfig)
    pod = cluster.create_pod("big", cpu="3")
    cluster.wait_for_event("big", "FailedScheduling")
    found = explained(extender, cluster, "big", "--why-not=a")
    assert found["records"][0]["reasons"] == {"Insufficient cpu": 1}
    assert found["why_not"]["rejections"] == ["NodeResourcesFit: Insufficient cpu"]
    (remedy,) = found["remedies"]
    assert remedy["message"].startswith("1 node rejects it only by NodeResourcesFit")
    answer = decided(tmp_path, state_of(cluster), pod, plugins)
    assert found["records"][0]["message"] == answer["fit_error"]
