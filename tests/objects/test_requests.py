"""How much a pod asks for."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import (
    amounts_as_int,
    asked_requests,
    is_counted,
    is_extended,
    is_scalar,
    nonzero_requests,
    pod_limits,
    pod_requests,
    scored_requests,
)

MIB = 1024 * 1024


def container(name: str = "main", *, is_sidecar: bool = False, **requests: Any) -> dict[str, Any]:
    asked = {key.replace("_", "-"): amount for key, amount in requests.items()}
    policy = {"restartPolicy": "Always"} if is_sidecar else {}
    return {"name": name, "resources": {"requests": asked}, **policy}


def pod_of(
    *containers: dict[str, Any],
    init: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    return msgspec.convert(
        {
            "spec": {"containers": list(containers), "initContainers": init or [], **spec},
            "status": status or {},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(pod_of(container()), {}, id="is empty when nothing is asked for"),
        pytest.param(
            pod_of(container(cpu="250m", memory="1Mi"), container("b", cpu="1.5", gpu=1)),
            {"cpu": 250 + 1500, "memory": MIB, "gpu": 1},
            id="adds up containers",
        ),
        pytest.param(
            pod_of(container(cpu="0.4m"), container("b", cpu="0.4m"), container("c", cpu="0.2m")),
            {"cpu": 1},  # 0.4 + 0.4 + 0.2 = 1.0, rounded once
            id="rounds the total and not each part",
        ),
        pytest.param(
            pod_of(container(cpu="1"), init=[container("i", cpu="3"), container("j", cpu="2")]),
            {"cpu": 3000},  # max(1000, 3000, 2000)
            id="takes the largest init container when it is more",
        ),
        pytest.param(
            pod_of(container(cpu="4"), init=[container("i", cpu="3", memory="2Mi")]),
            {"cpu": 4000, "memory": 2 * MIB},
            id="compares per resource",
        ),
        pytest.param(
            pod_of(container(cpu="1"), init=[container("s", is_sidecar=True, cpu="2")]),
            {"cpu": 3000},  # 1000 + 2000
            id="adds sidecars to the containers",
        ),
        pytest.param(
            pod_of(
                container(cpu="1"),
                init=[
                    container("early", cpu="4"),
                    container("s", is_sidecar=True, cpu="2"),
                    container("late", cpu="3"),
                ],
            ),
            {"cpu": 5000},  # max(1000 + 2000, 4000, 2000 + 3000)
            id="counts sidecars that run already beside a later init container",
        ),
        pytest.param(
            pod_of(
                container(cpu="1"),
                init=[container("late", cpu="4"), container("s", is_sidecar=True, cpu="2")],
            ),
            {"cpu": 4000},  # max(1000 + 2000, 4000)
            id="does not count a sidecar beside an earlier init container",
        ),
        pytest.param(
            pod_of(container(cpu="1"), overhead={"cpu": "100m", "memory": "1Mi"}),
            {"cpu": 1100, "memory": MIB},
            id="adds the overhead",
        ),
        pytest.param(
            pod_of(
                container(cpu="1", memory="1Mi", ephemeral_storage=5),
                resources={"requests": {"cpu": "3", "ephemeral-storage": 9}},
                overhead={"cpu": "100m"},
            ),
            {"cpu": 3100, "memory": MIB, "ephemeral-storage": 5},
            id="replaces cpu and memory by the pod level, and adds overhead after that",
        ),
        pytest.param(
            pod_of(container(), resources={"requests": {"hugepages-2Mi": "4Mi"}}),
            {"hugepages-2Mi": 4 * MIB},
            id="takes huge pages from the pod level",
        ),
    ],
)
def test_what_a_pod_requests(pod: Pod, wanted: dict[str, int]) -> None:
    assert pod_requests(pod) == wanted


def resized(spec_cpu: str, *, reason: str = "Deferred", **status: Any) -> Pod:
    return pod_of(
        container(cpu=spec_cpu),
        status={
            "containerStatuses": [{"name": "main", **status}],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        },
    )


@pytest.mark.parametrize(
    ("pod", "cpu_milli"),
    [
        pytest.param(
            resized("1", resources={"requests": {"cpu": "2"}}), 2000, id="is what runs when larger"
        ),
        pytest.param(
            resized("3", resources={"requests": {"cpu": "2"}}), 3000, id="is the spec when larger"
        ),
        pytest.param(
            resized("1", allocatedResources={"cpu": "4"}, resources={"requests": {"cpu": "2"}}),
            4000,
            id="is what is allocated when larger",
        ),
        pytest.param(
            resized("9", reason="Infeasible", resources={"requests": {"cpu": "2"}}),
            2000,
            id="leaves the spec out when the resize is infeasible",
        ),
        pytest.param(
            resized("9", reason="Infeasible"), 9000, id="is the spec when the status says nothing"
        ),
    ],
)
def test_a_resize_in_flight(pod: Pod, cpu_milli: int) -> None:
    assert pod_requests(pod) == {"cpu": cpu_milli}


_EIGHT = {"requests": {"cpu": "8"}}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({}, {"containerStatuses": [{"name": "main", "resources": _EIGHT}]}),
        pytest.param({}, {"initContainerStatuses": [{"name": "main", "resources": _EIGHT}]}),
        pytest.param({"resources": {"requests": {"cpu": "1"}}}, {"resources": _EIGHT}),
        pytest.param(
            {"resources": {"requests": {"cpu": "1"}}}, {"allocatedResources": {"cpu": "8"}}
        ),
    ],
)
def test_a_pod_that_is_to_get_a_node_asks_for_what_its_spec_says(
    spec: dict[str, Any], status: dict[str, Any]
) -> None:
    """kube-scheduler reads no status there either, and to us such pods are of one signature."""
    pod = pod_of(container(cpu="1"), status=status, **spec)
    assert pod_requests(pod) == {"cpu": 8000}
    assert asked_requests(pod) == {"cpu": 1000}


def test_the_status_of_another_container_does_not_count() -> None:
    status = {"name": "other", "resources": {"requests": {"cpu": "8"}}}
    pod = pod_of(container(cpu="1"), status={"containerStatuses": [status]})
    assert pod_requests(pod) == {"cpu": 1000}


def test_the_resize_of_a_sidecar() -> None:
    status = {"name": "s", "resources": {"requests": {"cpu": "8"}}}
    pod = pod_of(
        container(cpu="1"),
        init=[container("s", is_sidecar=True, cpu="2")],
        status={"initContainerStatuses": [status]},
    )
    assert pod_requests(pod) == {"cpu": 9000}


@pytest.mark.parametrize(
    ("spec_cpu", "reason", "cpu_milli"),
    [
        pytest.param("2", "Deferred", 5000, id="is what is allocated when larger"),
        pytest.param("9", "Deferred", 9000, id="is the spec when larger"),
        pytest.param("9", "Infeasible", 5000, id="leaves the spec out when it is infeasible"),
    ],
)
def test_a_resize_at_the_pod_level(spec_cpu: str, reason: str, cpu_milli: int) -> None:
    pod = pod_of(
        container(cpu="1"),
        resources={"requests": {"cpu": spec_cpu}},
        status={
            "resources": {"requests": {"cpu": "3"}},
            "allocatedResources": {"cpu": "5"},
            "conditions": [{"type": "PodResizePending", "reason": reason}],
        },
    )
    assert pod_requests(pod) == {"cpu": cpu_milli}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param(pod_of(container()), (100, 200 * MIB), id="fills both in"),
        pytest.param(
            pod_of(container(cpu="1"), container("b", memory="1Mi")),
            (1000 + 100, 200 * MIB + MIB),
            id="fills in per container",
        ),
        pytest.param(
            pod_of(container(cpu="0", memory=0)), (0, 0), id="leaves an explicit zero alone"
        ),
        pytest.param(
            pod_of(container(cpu="50m"), init=[container("i")]),
            (100, 200 * MIB),  # max(50, 100), max(200, 200)
            id="fills in init containers too",
        ),
        pytest.param(
            pod_of(container(), resources={"requests": {"cpu": "2"}}),
            (2000, 200 * MIB),
            id="fills in what neither the pod level nor a container says",
        ),
        pytest.param(
            pod_of(
                container(memory="1Mi"),
                container("b"),
                resources={"requests": {"cpu": "2"}},
            ),
            (2000, MIB),
            id="fills in nothing that a container says beside a pod level",
        ),
        pytest.param(
            pod_of(container(), overhead={"cpu": "10m"}), (110, 200 * MIB), id="adds overhead"
        ),
    ],
)
def test_defaults_of_a_pod_on_a_node(pod: Pod, wanted: tuple[int, int]) -> None:
    assert nonzero_requests(pod) == wanted


def test_scoring_fills_defaults_in_and_leaves_pod_level_and_status_out() -> None:
    pod = pod_of(
        container(cpu="1", gpu=2),
        container("b"),
        resources={"requests": {"cpu": "8"}},
        overhead={"memory": "1Mi"},
        status={"containerStatuses": [{"name": "b", "allocatedResources": {"cpu": "7"}}]},
    )
    assert scored_requests(pod) == {"cpu": 1000 + 100, "memory": (400 + 1) * MIB, "gpu": 2}


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param(
            pod_of(container("web", cpu="lots")),
            "container 'web' resources.requests: 'lots' is not a quantity "
            "such as 500m, 2, 1.5Gi or 2e3",
            id="of a container",
        ),
        pytest.param(
            pod_of(container(), overhead={"cpu": "x"}),
            "spec.overhead: 'x' is not a quantity such as 500m, 2, 1.5Gi or 2e3",
            id="of the overhead",
        ),
    ],
)
def test_a_wrong_amount_is_told_with_its_place(pod: Pod, problem: str) -> None:
    with pytest.raises(QuantityError) as caught:
        pod_requests(pod)
    assert str(caught.value) == problem


def test_amounts_as_integers() -> None:
    amounts: dict[str, str | int | float] = {"cpu": "1.5", "memory": "1.5", "example.com/gpu": 2}
    assert amounts_as_int(amounts, "here") == {"cpu": 1500, "memory": 2, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("resource", "kinds"),
    [
        ("cpu", {"counted"}),
        ("memory", {"counted"}),
        ("ephemeral-storage", {"counted"}),
        ("pods", set()),
        ("gpu", set()),
        ("requests.example.com/gpu", set()),
        ("example.com/gpu", {"counted", "scalar", "extended"}),
        ("kubernetes.io/batch", {"counted", "scalar"}),
        ("node.kubernetes.io/x", {"counted", "scalar"}),
        ("hugepages-2Mi", {"counted", "scalar"}),
        ("attachable-volumes-aws-ebs", {"counted", "scalar"}),
    ],
)
def test_kinds_of_resources(resource: str, kinds: set[str]) -> None:
    questions = {"counted": is_counted, "scalar": is_scalar, "extended": is_extended}
    assert {kind for kind, asks in questions.items() if asks(resource)} == kinds


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"containers": [{"name": "a"}]}, {}, id="say nothing of what is not said"),
        pytest.param(
            {
                "containers": [
                    {"name": "a", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}},
                    {"name": "b", "resources": {"limits": {"cpu": "500m"}}},
                ],
                "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "4"}}}],
                "overhead": {"cpu": "100m", "ephemeral-storage": "1Gi"},
            },
            {"cpu": 4100, "memory": 1024**3},
            id="are the larger of init and running, with the overhead of what is said",
        ),
        pytest.param(
            {
                "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}],
                "resources": {"limits": {"cpu": "3"}},
            },
            {"cpu": 3000},
            id="are those of the pod as a whole where it has some",
        ),
    ],
)
def test_limits(spec: dict[str, Any], want: dict[str, int]) -> None:
    assert pod_limits(msgspec.convert({"spec": spec}, Pod)) == want
