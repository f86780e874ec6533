"""The pages of `lowtide extender` and `lowtide shadow` in a real browser: the pods are placed by
somebody else, and the page says so."""

import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect
from tests.extender_process import BY_LABEL, LABEL, extenders_in
from tests.integration.conftest import Cluster, EmbeddedCluster

from lowtide.localcluster.faults import Drop
from realparts.process import Process, free_port, wait_until

pytestmark = pytest.mark.real("chromium")

LOWTIDE = Path(sys.executable).parent / "lowtide"


@pytest.fixture
def embedded() -> Iterator[EmbeddedCluster]:
    embedded = EmbeddedCluster()
    embedded.start()
    yield embedded
    embedded.stop()


@pytest.fixture
def cluster(embedded: EmbeddedCluster, tmp_path: Path) -> Cluster:
    cluster = Cluster(
        embedded.send, embedded.cluster.kubeconfig(tmp_path / "kubeconfig"), "default"
    )
    for name, cpu in (("large", "8"), ("small", "2")):
        cluster.create_node(name, cpu=cpu)
        cluster.send("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": {LABEL: "true"}}})
    cluster.create_node("unlabelled")
    return cluster


@pytest.fixture
def extender_url(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    config = yaml.safe_load(yaml.safe_dump(BY_LABEL))
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"].append({"name": "NodeResourcesFit"})
    with extenders_in(tmp_path) as start:
        yield start(config, cluster.kubeconfig).url


@pytest.fixture
def shadow_url(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    with served_by("shadow", "--port", cluster, tmp_path) as url:
        yield url


@pytest.fixture
def scheduler_url(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    flags = ("--leader-elect=false", "--plain-http")
    with served_by("scheduler", "--secure-port", cluster, tmp_path, *flags) as url:
        yield url


@contextmanager
def served_by(
    mode: str, port_flag: str, cluster: Cluster, folder: Path, *more: str
) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    flags = [f"--kubeconfig={cluster.kubeconfig}", f"{port_flag}={port}", *more]
    process = Process(mode, [LOWTIDE, mode, *flags], folder=folder, url=url)
    process.start()
    process.wait_until_ready(lambda: said_by(f"{url}/readyz") == "ok")
    yield url
    assert process.stop() == 0


def said_by(url: str, question: Any = None) -> str:
    body = None if question is None else json.dumps(question).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as response:
        return str(response.read().decode())


def bind(cluster: Cluster, name: str, node_name: str) -> None:
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
    cluster.send("POST", f"{cluster.pods_path}/{name}/binding", binding)


def test_the_extenders_page_shows_what_it_advised(
    cluster: Cluster, extender_url: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(extender_url)
    expect(page.locator("#mode")).to_have_text("extender")
    expect(page.locator("#decisions-told")).to_have_text("none yet")
    pod = cluster.create_pod("web", cpu="500m")
    names = ["large", "small", "unlabelled"]
    said_by(f"{extender_url}/scheduler/filter", {"Pod": pod, "NodeNames": names})
    said_by(f"{extender_url}/scheduler/prioritize", {"Pod": pod, "NodeNames": names[:2]})
    lines = page.locator("#decisions-list a")
    expect(lines).to_have_count(2)
    expect(lines.first).to_have_attribute(
        "title", "default/web: large is advised (asked to prioritize)"
    )
    bind(cluster, "web", "small")
    api = f"{extender_url}/api/decisions/default/web"
    wait_until(
        lambda: json.loads(said_by(api))["records"][0]["actual_node"] == "small",
        timeout_seconds=10,
        what="the extender has seen where the pod went",
    )
    lines.first.click()
    expect(page.locator("#pod-view .verdict")).to_contain_text(
        "It is on small; asked to prioritize, Lowtide advised large"
    )
    expect(page.locator(".scores tr.chosen th")).to_have_text("large")
    said = json.loads(said_by(api))["records"][0]["priorities"]
    assert sorted(said["by_node"]) == ["large", "small"]
    of_ten = page.locator(".scores td.priority")
    assert of_ten.all_inner_texts() == [str(said["by_node"][name]) for name in names[:2]]
    expect(page.locator("#pod-view .priorities")).to_contain_text("kube-scheduler")
    attempts = page.locator("#pod-view .attempts button")
    expect(attempts).to_have_count(2)
    expect(attempts.nth(1)).to_contain_text("filter: large")
    attempts.nth(1).click()
    expect(attempts.nth(1)).to_be_focused()
    expect(page.locator("#pod-view .verdict")).to_contain_text("Asked to filter, Lowtide advised")
    expect(of_ten).to_have_count(0)
    page.locator("#pod-view .verdict a").first.click()
    expect(page.locator("#node-title")).to_have_text("large")


def test_the_shadows_page_shows_where_pods_would_be(
    cluster: Cluster, shadow_url: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(shadow_url)
    expect(page.locator("#mode")).to_have_text("shadow")
    for name, node_name in (("same", "large"), ("moved", "small")):
        cluster.create_pod(name, cpu="500m")
        wait_until(
            lambda: "lowtide_shadow_pending_pods 1.0" in said_by(f"{shadow_url}/metrics"),
            timeout_seconds=10,
            what="the shadow has seen the pod wait",
        )
        bind(cluster, name, node_name)
        wait_until(
            lambda: "lowtide_shadow_pending_pods 0.0" in said_by(f"{shadow_url}/metrics"),
            timeout_seconds=10,
            what="the shadow has seen the pod placed",
        )
    lines = page.locator("#decisions-list a")
    expect(lines).to_have_count(2)
    expect(lines.nth(1)).to_have_attribute("title", "default/same: agrees: large")
    expect(lines.first).to_have_attribute(
        "title", "default/moved: it would be on large, is on small"
    )
    expect(lines.first.locator(".node")).to_have_text("small → large")
    lines.first.click()
    expect(page.locator("#pod-view .verdict")).to_contain_text(
        "It is on small, and would be on large"
    )
    page.locator("#pod-view .verdict a").first.click()
    expect(page.locator("#node-title")).to_have_text("small")
    expect(page.locator('#node-view .pods a[data-pod="default/moved"]')).to_be_visible()


@pytest.mark.parametrize("mode", ["scheduler", "extender", "shadow"])
def test_a_page_tells_while_the_api_server_is_away(
    mode: str,
    embedded: EmbeddedCluster,
    request: pytest.FixtureRequest,
    open_page: Callable[..., Page],
) -> None:
    page = open_page(request.getfixturevalue(f"{mode}_url"))
    expect(page.locator("#mode")).to_have_text(mode)
    expect(page.locator("#health .figures").first).to_be_visible()
    banner = page.locator("#stale-watches")
    expect(banner).to_be_hidden()
    embedded.call(lambda local: local.faults.drop("GET", "", when=Drop.BEFORE_APPLYING, times=-1))
    embedded.call(lambda local: local.faults.cut_watches())
    expect(banner).to_contain_text(
        "are not renewed, and what you see of them is from then", timeout=20_000
    )
    expect(banner).to_contain_text("pods, nodes")
    expect(page.locator("#heat-title")).to_be_visible()
    embedded.call(lambda local: local.faults.clear())
    expect(banner).to_be_hidden(timeout=40_000)
