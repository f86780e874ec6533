"""A pod on a node: its host ports, its footprint, and when two look alike."""

import weakref
from typing import Any

import msgspec
import pytest

from lowtide.cluster.placed import (
    NONZERO,
    Footprint,
    Footprints,
    HostPort,
    PlacedPod,
    footprint_of,
    host_ports_of,
)
from lowtide.objects.pod import Pod
from lowtide.testing import make_pod


@pytest.mark.parametrize(
    ("wanted", "held", "is_conflict"),
    [
        pytest.param("0.0.0.0", "0.0.0.0", True, id="every address conflicts with itself"),
        pytest.param("0.0.0.0", "10.0.0.1", True, id="every address conflicts with one"),
        pytest.param("10.0.0.1", "0.0.0.0", True, id="one address conflicts with every"),
        pytest.param("10.0.0.1", "10.0.0.1", True, id="one address conflicts with itself"),
        pytest.param("10.0.0.1", "10.0.0.2", False, id="two addresses do not conflict"),
    ],
)
def test_a_host_port(wanted: str, held: str, is_conflict: bool) -> None:
    assert HostPort("TCP", 80, wanted).conflicts(held) is is_conflict


def test_host_ports_of_containers_and_sidecars() -> None:
    pod = make_pod(
        spec={
            "containers": [
                {
                    "name": "main",
                    "ports": [
                        {"containerPort": 1},
                        {"hostPort": 80},
                        {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
                    ],
                }
            ],
            "initContainers": [
                {"name": "i", "ports": [{"hostPort": 81}]},
                {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 82}]},
            ],
        }
    )
    assert host_ports_of(pod) == (
        HostPort("TCP", 80, "0.0.0.0"),
        HostPort("UDP", 53, "10.0.0.1"),
        HostPort("TCP", 82, "0.0.0.0"),
    )


def test_a_footprint() -> None:
    pod = make_pod(cpu="1", requests={"example.com/gpu": 2}, host_ports=[80])
    assert footprint_of(pod) == Footprint(
        amounts={
            "cpu": 1000,
            "example.com/gpu": 2,
            NONZERO["cpu"]: 1000,
            NONZERO["memory"]: 200 * 1024 * 1024,
        },
        host_ports=(HostPort("TCP", 80, "0.0.0.0"),),
    )


def test_what_a_footprint_requests() -> None:
    pod = make_pod(cpu="1", requests={"example.com/gpu": 2})
    assert footprint_of(pod).requests == {"cpu": 1000, "example.com/gpu": 2}


def test_a_running_pod_that_cannot_be_read_takes_its_ports_and_nothing_else() -> None:
    pod = make_pod(cpu="lots", host_ports=[80])
    assert footprint_of(pod) == Footprint({}, (HostPort("TCP", 80, "0.0.0.0"),), is_clamped=True)


def placed(pod: Pod, node_name: str = "a", *, is_assumed: bool = False) -> PlacedPod:
    return PlacedPod(pod, node_name, footprint_of(pod), is_assumed)


BEFORE = placed(make_pod(on="a", cpu="1", labels={"app": "web"}), is_assumed=True)


@pytest.mark.parametrize(
    ("after", "is_alike"),
    [
        pytest.param(
            placed(make_pod(on="a", cpu="1", labels={"app": "web"}, phase="Running")),
            True,
            id="a new phase, and an assumption confirmed",
        ),
        pytest.param(
            placed(make_pod(on="a", cpu="1", labels={"app": "web"}, annotations={"a": "b"})),
            False,
            id="another annotation",
        ),
        pytest.param(
            placed(make_pod(cpu="1", labels={"app": "web"}), "b"), False, id="another node"
        ),
        pytest.param(placed(make_pod(cpu="2", labels={"app": "web"})), False, id="a resize"),
        pytest.param(placed(make_pod(cpu="1", labels={"app": "db"})), False, id="other labels"),
        pytest.param(
            placed(make_pod(cpu="1", labels={"app": "web"}, priority=1)), False, id="a priority"
        ),
        pytest.param(
            placed(make_pod(cpu="1", labels={"app": "web"}, deleted=True)), False, id="a deletion"
        ),
    ],
)
def test_whether_a_plugin_can_tell(after: PlacedPod, is_alike: bool) -> None:
    assert BEFORE.is_same_to_plugins(after) is is_alike


def pod_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    whole = {"containers": [container], **spec}
    return msgspec.convert({"spec": whole, "status": status or {}}, Pod)


LARGE = {"requests": {"cpu": "3", "memory": "1Gi"}}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            pod_of({"containers": [{"name": "main", "resources": LARGE}]}), id="containers"
        ),
        pytest.param(
            pod_of({"initContainers": [{"name": "first", "resources": LARGE}]}),
            id="init containers",
        ),
        pytest.param(pod_of({"overhead": {"cpu": "250m"}}), id="overhead"),
        pytest.param(pod_of({"resources": LARGE}), id="the pod's own resources"),
        pytest.param(
            pod_of({}, {"containerStatuses": [{"name": "main", "resources": LARGE}]}),
            id="what its container was given",
        ),
        pytest.param(pod_of({"volumes": [{"name": "v"}]}), id="that it has volumes"),
        pytest.param(pod_of({"affinity": {"podAffinity": {}}}), id="that it has affinity terms"),
    ],
)
def test_after_a_pod_what_the_next_takes_is_its_own_where_it_differs_in(other: Pod) -> None:
    footprints, one = Footprints(), pod_of({})
    assert [footprints.footprint(each) for each in (one, other, one)] == [
        footprint_of(one),
        footprint_of(other),
        footprint_of(one),
    ]


MEDIUM = {"requests": {"cpu": "2"}}
GIVEN = {"name": "main", "resources": MEDIUM}
INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            {"containerStatuses": [{**GIVEN, "resources": LARGE}]}, id="what it was given"
        ),
        pytest.param(
            {"containerStatuses": [{**GIVEN, "allocatedResources": {"cpu": "4"}}]},
            id="what was allocated to it",
        ),
        pytest.param(
            {"containerStatuses": [{**GIVEN, "name": "other"}]}, id="the container told of"
        ),
        pytest.param(
            {"containerStatuses": [GIVEN], "conditions": [INFEASIBLE]},
            id="whether the resize is possible",
        ),
        pytest.param({"containerStatuses": [{"name": "main"}]}, id="whether anything is told"),
    ],
)
def test_after_a_running_pod_what_the_next_takes_is_its_own_where_it_differs_in(
    other: dict[str, Any],
) -> None:
    large = {"containers": [{"name": "main", "resources": LARGE}]}
    one, two = pod_of(large, {"containerStatuses": [GIVEN]}), pod_of(large, other)
    footprints = Footprints()
    found = [footprints.footprint(each) for each in (one, two, one)]
    assert found == [footprint_of(each) for each in (one, two, one)]


def test_what_running_pods_alike_take_is_kept_once_whatever_comes_between() -> None:
    footprints, waiting = Footprints(), pod_of({})
    running = [pod_of({}, {"containerStatuses": [GIVEN], "phase": each}) for each in ("a", "b")]
    found = [footprints.footprint(each) for each in (waiting, running[0], waiting, running[1])]
    assert found[0] is found[2]
    assert found[1] is found[3]


def test_affinity_to_nodes_is_told_from_affinity_to_pods() -> None:
    footprints = Footprints()
    to_nodes, to_pods = (
        pod_of({"affinity": {"nodeAffinity": {}}}),
        pod_of({"affinity": {"podAffinity": {}}}),
    )
    found = [footprints.footprint(each) for each in (to_nodes, to_pods)]
    assert [each.has_affinity_terms for each in found] == [False, True]


def test_what_pods_alike_take_is_kept_once() -> None:
    footprints = Footprints()
    assert footprints.footprint(pod_of({})) is footprints.footprint(
        pod_of({"nodeName": "a", "priority": 3})
    )


def test_what_pods_take_is_let_go_with_the_last_of_them() -> None:
    footprints = Footprints()
    one, two = (footprints.footprint(pod_of({})) for _ in range(2))
    known = weakref.ref(one)
    del one
    assert known() is two
    del two
    assert known() is None
