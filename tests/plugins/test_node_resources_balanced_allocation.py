"""NodeResourcesBalancedAllocation: prefers nodes whose use the pod makes more even."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.pod import Pod
from lowtide.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from lowtide.testing import make_node, make_pod, make_state, scores

GPU = "example.com/gpu"


def args(**given: Any) -> NodeResourcesBalancedAllocationArgs:
    return msgspec.convert(given, NodeResourcesBalancedAllocationArgs)


def plugin(*resources: str) -> NodeResourcesBalancedAllocation:
    listed = {"resources": [{"name": name} for name in resources]} if resources else {}
    return NodeResourcesBalancedAllocation(args(**listed))


@pytest.mark.parametrize(
    ("resources", "pod", "wanted"),
    [
        # The nodes have 4 cpu and 32Gi; `used` runs 2 cpu and 4Gi: shares 0.5 and 0.125.
        pytest.param(
            (),
            make_pod(cpu="100m", memory="500Mi"),
            # empty: shares 0.025, 0.0153: int((1-0.0049)*100) = 99, before 100 -> 50 + 49//2
            # used: 0.525, 0.1403: int(80.8) = 80, before int(81.25) = 81 -> 50 + 49//2
            {"empty": 74, "used": 74},
            id="changes little for a small pod",
        ),
        pytest.param(
            (),
            make_pod(cpu="500m", memory="8Gi"),
            # empty: 0.125, 0.25: int(93.75) = 93 -> 50 + (50-7)//2 = 71
            # used: 0.625, 0.375: int(87.5) = 87, before 81 -> 50 + (50+6)//2 = 78
            {"empty": 71, "used": 78},
            id="prefers the node that the pod balances",
        ),
        pytest.param(
            (),
            make_pod(cpu="4"),
            # empty: 1, 0: 50 -> 50 + (50-50)//2; used: 1 (capped), 0.125: int(56.25), before 81
            {"empty": 50, "used": 50 + (50 + 56 - 81) // 2},
            id="caps a share at 100 percent",
        ),
        pytest.param((), make_pod(), None, id="has no opinion on a pod without requests"),
        pytest.param(
            (),
            make_pod(requests={GPU: 1}),
            None,
            id="has no opinion on a resource that is not configured",
        ),
        pytest.param(
            ("cpu",),
            make_pod(cpu="1"),
            {"empty": 75, "used": 75},
            id="scores one resource as balanced",
        ),
        pytest.param(
            ("cpu", "memory", GPU),
            make_pod(cpu="500m", memory="8Gi"),
            {"empty": 71, "used": 78},
            id="ignores an extended resource that the pod does not request",
        ),
        pytest.param(
            ("cpu", "memory", GPU),
            make_pod(cpu="500m", memory="8Gi", requests={GPU: 1}),
            {"empty": 71, "used": 78},
            id="ignores an extended resource that the node lacks",
        ),
        pytest.param(
            ("cpu", "memory", "pods"),
            make_pod(cpu="500m", memory="8Gi"),
            {"empty": 71, "used": 78},
            id="ignores the number of pods",
        ),
    ],
)
def test_score(resources: tuple[str, ...], pod: Pod, wanted: dict[str, int] | None) -> None:
    nodes = [make_node(name, cpu="4", memory="32Gi") for name in ("empty", "used")]
    running = make_pod("p", on="used", cpu="2", memory="4Gi")
    assert scores(plugin(*resources), pod, make_state(nodes, [running])) == wanted


def test_three_resources_by_their_standard_deviation() -> None:
    state = make_state([make_node("a", cpu="4", memory="4Gi", example_com__gpu=4)])
    pod = make_pod(cpu="1", memory="2Gi", requests={GPU: 3})
    # shares 0.25, 0.5, 0.75: mean 0.5, deviation sqrt((0.0625 + 0 + 0.0625) / 3) = 0.2041
    # int((1-0.2041)*100) = 79, before 100 -> 50 + (50-21)//2 = 64
    assert scores(plugin("cpu", "memory", GPU), pod, state) == {"a": 64}


def test_a_node_that_lacks_a_resource_beside_one_that_has_it() -> None:
    state = make_state(
        [make_node("a", cpu="4", memory="4Gi", example_com__gpu=4), make_node("b", memory="0")]
    )
    pod = make_pod(cpu="1", memory="2Gi", requests={GPU: 3})
    # b counts cpu alone: even before and after
    assert scores(plugin("cpu", "memory", GPU), pod, state) == {"a": 64, "b": 75}


def test_pods_that_do_not_say_count_as_nothing() -> None:
    state = make_state([make_node("a", cpu="1", memory="1Gi")], [make_pod("p", on="a")])
    # shares 1, 0: 50, before 100 -> 50 + (50-50)//2
    assert scores(plugin(), make_pod(cpu="1"), state) == {"a": 50}


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        pytest.param(
            [{"name": "cpu"}, {"name": "memory", "weight": 1}], [], id="accepts a weight of 1"
        ),
        pytest.param([{"name": "cpu", "weight": 0}], [], id="accepts a weight of 0, which means 1"),
        pytest.param(
            [{"name": "cpu", "weight": 2}],
            ["the weight of resource cpu must be 1, not 2"],
            id="rejects another weight",
        ),
        pytest.param(
            [{"name": "cpu"}, {"name": "cpu"}],
            ["resource cpu is listed twice; name it once"],
            id="rejects a resource listed twice",
        ),
    ],
)
def test_problems(resources: list[dict[str, Any]], told: list[str]) -> None:
    assert list(args(resources=resources).problems()) == [("resources", text) for text in told]
