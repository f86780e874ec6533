"""DynamicResources: no opinion on pods without claims; pods with claims are rejected for now."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from lowtide.framework.plugin import BoolArray, Nodes, Pod, PodRejection, PostFiltered
from lowtide.objects.devices import DeviceClass
from lowtide.plugins.dynamic_resources import DynamicResources
from lowtide.testing import make_node, make_pod, make_state, scores


def device_class(name: str, **spec: str) -> DeviceClass:
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


CLASSES = [device_class("gpu.example.com", extendedResourceName="example.com/gpu")]
CLAIMING = make_pod(spec={"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]})
PLAIN = make_pod()


def nodes_with(*classes: DeviceClass) -> Nodes:
    state = make_state([make_node("a"), make_node("b")])
    for each in classes:
        state.put_object(each)
    return state.nodes()


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(PLAIN, None, id="accepts a plain pod"),
        pytest.param(
            CLAIMING,
            "Lowtide does not allocate resource claims: [a]",
            id="rejects a pod with a claim",
        ),
        pytest.param(
            make_pod(requests={"example.com/gpu": 1, "cpu": 1}),
            "Lowtide does not allocate devices: example.com/gpu is served by device class "
            "gpu.example.com",
            id="rejects an extended resource that a device class names",
        ),
        pytest.param(
            make_pod(requests={"deviceclass.resource.kubernetes.io/gpu.example.com": 2}),
            "Lowtide does not allocate devices: deviceclass.resource.kubernetes.io/gpu.example.com "
            "is served by device class gpu.example.com",
            id="rejects the implicit resource of a device class",
        ),
        pytest.param(
            make_pod(requests={"example.com/gpu": 0}), None, id="accepts a request for 0 devices"
        ),
        pytest.param(
            make_pod(requests={"example.com/tpu": 1}),
            None,
            id="accepts any other extended resource",
        ),
    ],
)
def test_pre_filter(pod: Pod, reason: str | None) -> None:
    found = DynamicResources().pre_filter(pod, nodes_with(*CLASSES))
    assert found == (None if reason is None else PodRejection(reason))


def test_a_resource_that_no_class_serves_is_an_ordinary_one() -> None:
    pod = make_pod(requests={"example.com/gpu": 1})
    assert DynamicResources().pre_filter(pod, nodes_with()) is None
    assert DynamicResources().pre_filter(pod, nodes_with(device_class("plain"))) is None


def test_every_node_scores_nothing() -> None:
    state = make_state([make_node("a"), make_node("b")])
    assert scores(DynamicResources(), PLAIN, state) == {"a": 0, "b": 0}


@dataclass
class RejectedBy:
    """What `post_filter` is told; only whether the plugin was reached matters here."""

    is_reached: bool
    turn: int = 0
    gives_way_after: float = 0.0

    @property
    def eviction_may_help(self) -> BoolArray:
        return np.zeros(2, np.bool_)

    def was_reached(self, plugin_name: str) -> bool:
        return self.is_reached and plugin_name == "DynamicResources"

    def on(self, nodes: Nodes) -> dict[int, Any]:
        return {}

    def fits(self, nodes: Nodes) -> BoolArray:
        return np.zeros(len(nodes), np.bool_)


@pytest.mark.parametrize(
    ("pod", "is_reached", "said"),
    [
        pytest.param(
            PLAIN,
            True,
            PostFiltered("no new claims to deallocate"),
            id="has no claims to deallocate",
        ),
        pytest.param(
            CLAIMING,
            True,
            PostFiltered("still not schedulable"),
            id="cannot help a pod with claims",
        ),
        pytest.param(
            PLAIN,
            False,
            PostFiltered("not found", is_error=True),
            id="returns an error if another plugin rejected the pod first",
        ),
    ],
)
def test_post_filter(pod: Pod, is_reached: bool, said: PostFiltered) -> None:
    found = DynamicResources().post_filter(pod, nodes_with(*CLASSES), RejectedBy(is_reached))
    assert found == said
