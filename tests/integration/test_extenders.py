"""Extenders are asked over HTTP, the same on the embedded and the real API server."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.conftest import FakeServer

from realparts.process import Process

Start = Callable[..., Process]
Configuration = Callable[..., dict[str, Any]]


class FakeExtender(FakeServer):
    """Leaves out the node `warm`, prefers `cool`, and binds by the API when told to."""

    def __init__(self) -> None:
        super().__init__(self._answered)
        self.asked: list[tuple[str, Any]] = []
        self.bind: Callable[[Any], None] = lambda args: None

    def _answered(self, path: str, body: bytes) -> tuple[str, str]:
        args = json.loads(body)
        self.asked.append((path, args))
        return "application/json", json.dumps(self.answer(path, args))

    def answer(self, path: str, args: Any) -> Any:
        match path:
            case "/filter":
                nodes = args["Nodes"]["items"]
                kept = [node for node in nodes if node["metadata"]["name"] != "warm"]
                return {"Nodes": {"items": kept}, "FailedNodes": {"warm": "it is too warm"}}
            case "/prioritize":
                return [{"Host": "cool", "Score": 10}]
            case _:
                self.bind(args)
                return {}


@pytest.fixture
def extender() -> Iterator[FakeExtender]:
    fake = FakeExtender()
    fake.start()
    yield fake
    fake.stop()


def test_an_extender_filters_and_prefers(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, extender: FakeExtender
) -> None:
    for name in ("cool", "mild", "warm"):
        cluster.create_node(name)
    said = {
        "urlPrefix": extender.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 5,
    }
    lowtide_scheduler(configuration(extenders=[said]), cluster.kubeconfig)
    for number in range(3):
        cluster.create_pod(f"web-{number}", dnsPolicy="Default")
        assert cluster.wait_for_placement(f"web-{number}") == "cool"
    path, args = extender.asked[0]
    assert path == "/filter"
    assert args["Pod"]["spec"]["dnsPolicy"] == "Default"  # what no plugin reads is sent, too
    assert {"name", "uid", "resourceVersion"} <= args["Nodes"]["items"][0]["metadata"].keys()
    assert [path for path, _ in extender.asked][:4] == ["/filter", "/prioritize"] * 2


def test_an_extender_that_is_gone_is_told_and_comes_back(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, extender: FakeExtender
) -> None:
    cluster.create_node("cool")
    absent = {"urlPrefix": "http://127.0.0.1:9", "filterVerb": "filter"}
    may_be_ignored = {**absent, "ignorable": True}
    lowtide_scheduler(configuration("strict", extenders=[absent]), cluster.kubeconfig)
    lowtide_scheduler(configuration("easy", extenders=[may_be_ignored]), cluster.kubeconfig)
    cluster.create_pod("rejected", schedulerName="strict")
    cluster.create_pod("placed", schedulerName="easy")
    assert cluster.wait_for_placement("placed") == "cool"
    event = cluster.wait_for_event("rejected", "FailedScheduling")
    assert "the extender at URL http://127.0.0.1:9/filter cannot be reached" in event["note"]


def test_an_extender_binds(
    cluster: Any, configuration: Configuration, lowtide_scheduler: Start, extender: FakeExtender
) -> None:
    def bind(args: Any) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": args["PodName"], "uid": args["PodUID"]},
            "target": {"kind": "Node", "name": args["Node"]},
        }
        cluster.send("POST", f"{cluster.pods_path}/{args['PodName']}/binding", binding)

    extender.bind = bind
    cluster.create_node("cool")
    said = {"urlPrefix": extender.url, "bindVerb": "bind"}
    lowtide_scheduler(configuration(extenders=[said]), cluster.kubeconfig)
    cluster.create_pod("web")
    assert cluster.wait_for_placement("web") == "cool"
    assert [path for path, _ in extender.asked] == ["/bind"]
    cluster.wait_for_event("web", "Scheduled")
