"""Which labels Services ask for that select a pod."""

from typing import Any

import msgspec
import pytest

from lowtide.cluster.indexes.service_selectors import ServiceSelectors
from lowtide.cluster.table import Table
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import Service
from lowtide.testing import make_pod

POD = make_pod("web", labels={"app": "web", "tier": "front"})


def service(name: str, selector: dict[str, str], namespace: str = "default") -> Service:
    meta: dict[str, Any] = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": meta, "spec": {"selector": selector}}, Service)


def told_of(*services: Service) -> ServiceSelectors:
    selectors = ServiceSelectors(Table())
    for each in services:
        selectors.object_changed(None, each)
    return selectors


@pytest.mark.parametrize(
    ("services", "want"),
    [
        pytest.param([], {}, id="is empty without a Service"),
        pytest.param([service("a", {})], {}, id="is empty for a Service without a selector"),
        pytest.param(
            [service("a", {"app": "web"})], {"app": "web"}, id="is that of the only Service"
        ),
        pytest.param(
            [service("a", {"app": "web"}), service("b", {"tier": "front", "app": "web"})],
            {"app": "web", "tier": "front"},
            id="joins all Services that select the pod",
        ),
        pytest.param(
            [service("a", {"app": "web", "zone": "a"})],
            {},
            id="is empty if the pod lacks a label",
        ),
        pytest.param(
            [service("a", {"app": "web"}, "other")], {}, id="is empty in another namespace"
        ),
        pytest.param([service("a", {"app": "db"})], {}, id="is empty for another label value"),
    ],
)
def test_the_combined_selector(services: list[Service], want: dict[str, str]) -> None:
    assert told_of(*services).selected_by_services(POD) == want


def test_a_service_that_changes_or_goes() -> None:
    first, then = service("a", {"app": "web"}), service("a", {"tier": "front"})
    selectors = told_of(first, service("b", {"app": "web"}))
    selectors.object_changed(first, then)
    assert selectors.selected_by_services(POD) == {"app": "web", "tier": "front"}
    selectors.object_changed(then, None)
    assert selectors.selected_by_services(POD) == {"app": "web"}
    selectors.object_changed(service("b", {"app": "web"}), None)
    assert selectors.selected_by_services(POD) == {}


def test_a_pod_without_labels() -> None:
    assert told_of(service("a", {"app": "web"})).selected_by_services(Pod()) == {}
