"""NodeResourcesFit: too little left rejects; how much would be left is the score."""

from typing import Any

import msgspec
import pytest

from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import LARGEST
from lowtide.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from lowtide.plugins.node_unschedulable import NodeUnschedulable
from lowtide.testing import make_node, make_pod, make_state, place, rejections, scores

GPU = "example.com/gpu"
SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


def args(**given: Any) -> NodeResourcesFitArgs:
    return msgspec.convert(given, NodeResourcesFitArgs)


def plugin(**given: Any) -> NodeResourcesFit:
    return NodeResourcesFit(args(**given))


def scoring(kind: str, *resources: tuple[str, int], **more: Any) -> NodeResourcesFit:
    listed = [{"name": name, "weight": weight} for name, weight in resources]
    weights = {"resources": listed} if listed else {}
    return plugin(scoringStrategy={"type": kind, **weights, **more})


# Filter.


@pytest.mark.parametrize(
    ("pod", "rejected"),
    [
        pytest.param(make_pod(), [], id="accepts a pod without requests"),
        pytest.param(make_pod(cpu="500m"), [], id="accepts a request for exactly what is free"),
        pytest.param(
            make_pod(cpu="501m"),
            [("Insufficient cpu", True)],
            id="rejects a request of one millicore more",
        ),
        pytest.param(
            make_pod(cpu="2"), [("Insufficient cpu", True)], id="reports that eviction may help"
        ),
        pytest.param(
            make_pod(cpu="2001m"),
            [("Insufficient cpu", False)],
            id="reports that eviction cannot help beyond allocatable",
        ),
        pytest.param(
            make_pod(memory="2Gi", requests={"ephemeral-storage": "5Gi", GPU: 2}),
            [
                ("Insufficient memory", False),
                ("Insufficient ephemeral-storage", False),
                (f"Insufficient {GPU}", False),
            ],
            id="reports every insufficient resource",
        ),
        pytest.param(
            make_pod(requests={GPU: 1}), [], id="accepts an extended resource that is free"
        ),
        pytest.param(
            make_pod(requests={"hugepages-2Mi": "2Mi"}),
            [("Insufficient hugepages-2Mi", False)],
            id="rejects an extended resource that the node lacks",
        ),
        pytest.param(make_pod(requests={GPU: 0}), [], id="ignores a request of 0"),
        pytest.param(make_pod(requests={"gpu": 9}), [], id="ignores unknown resource names"),
        pytest.param(make_pod(requests={"pods": 500}), [], id="ignores pods as a request"),
    ],
)
def test_filter(pod: Pod, rejected: list[tuple[str, bool]]) -> None:
    node = make_node("a", cpu="2", memory="1Gi", example_com__gpu=1)
    nodes = make_state([node], [make_pod("p", on="a", cpu="1500m", memory="1Mi")]).nodes()
    found = [
        (each.reason, each.eviction_helps)
        for each in plugin().filter(pod, nodes)
        if each.mask.any()
    ]
    assert found == rejected


def test_each_node_is_rejected_for_its_own_reasons() -> None:
    state = make_state(
        [
            make_node("a", cpu="1"),
            make_node("b", memory="1Mi"),
            make_node("c"),
            make_node("d", pods=1),
        ],
        [make_pod("p", on="d")],
    )
    assert rejections(plugin(), make_pod(cpu="2", memory="1Gi"), state) == {
        "a": ["Insufficient cpu"],
        "b": ["Insufficient memory"],
        "d": ["Too many pods"],
    }


@pytest.mark.parametrize(
    ("most", "rejected"),
    [
        pytest.param(3, {}, id="accepts the last pod that has room"),
        pytest.param(2, {"a": ["Too many pods"]}, id="rejects one pod too many"),
        pytest.param(
            0, {"a": ["Too many pods"]}, id="rejects every pod on a node with 0 allocatable pods"
        ),
    ],
)
def test_the_number_of_pods(most: int, rejected: dict[str, list[str]]) -> None:
    running = [make_pod("p", on="a"), make_pod("q", on="a")]
    state = make_state([make_node("a", pods=most)], running)
    assert rejections(plugin(), make_pod(), state) == rejected


@pytest.mark.parametrize(
    ("ignoring", "rejected"),
    [
        pytest.param({"ignoredResources": [GPU]}, {}, id="ignores a resource by name"),
        pytest.param(
            {"ignoredResourceGroups": ["example.com"]}, {}, id="ignores a resource by group"
        ),
        pytest.param(
            {"ignoredResources": ["example.com/tpu"], "ignoredResourceGroups": ["other.com"]},
            {"a": [f"Insufficient {GPU}"]},
            id="does not ignore a resource of another group",
        ),
    ],
)
def test_extended_resources_are_ignored(
    ignoring: dict[str, Any], rejected: dict[str, list[str]]
) -> None:
    state = make_state([make_node("a")])
    assert rejections(plugin(**ignoring), make_pod(requests={GPU: 1}), state) == rejected


def test_kubes_own_resources_cannot_be_ignored() -> None:
    state = make_state([make_node("a", cpu="1")])
    ignoring = plugin(ignoredResources=["cpu"])
    assert rejections(ignoring, make_pod(cpu="2"), state) == {"a": ["Insufficient cpu"]}


# Score.

EMPTY = make_node("empty", cpu="4", memory="32Gi")
USED = make_node("used", cpu="4", memory="32Gi")
ON_USED = make_pod("p", on="used", cpu="2", memory="4Gi")


@pytest.mark.parametrize(
    ("judge", "pod", "wanted"),
    [
        pytest.param(
            plugin(),
            make_pod(cpu="100m", memory="500Mi"),
            # cpu (4000-100)*100//4000 = 97, memory (32768-500)*100//32768 = 98 -> 195//2
            # cpu (4000-2100)*100//4000 = 47, memory (32768-4596)*100//32768 = 85 -> 132//2
            {"empty": 97, "used": 66},
            id="prefers free nodes with LeastAllocated",
        ),
        pytest.param(
            plugin(),
            make_pod(cpu="500m", memory="8Gi"),
            # 87, 75 -> 162//2; (4000-2500)*100//4000 = 37, (32-12)*100//32 = 62 -> 99//2
            {"empty": 81, "used": 49},
            id="truncates the mean with LeastAllocated",
        ),
        pytest.param(
            scoring("MostAllocated"),
            make_pod(cpu="500m", memory="8Gi"),
            # 500*100//4000 = 12, 8*100//32 = 25 -> 37//2; 2500*100//4000 = 62, 37 -> 99//2
            {"empty": 18, "used": 49},
            id="prefers used nodes with MostAllocated",
        ),
        pytest.param(
            scoring("RequestedToCapacityRatio", requestedToCapacityRatio=SHAPE),
            make_pod(cpu="500m", memory="8Gi"),
            # (12 + 25)/2 = 18.5 -> 19; (62 + 37)/2 = 49.5 -> 50
            {"empty": 19, "used": 50},
            id="rounds half up with RequestedToCapacityRatio",
        ),
        pytest.param(
            scoring("LeastAllocated", ("cpu", 3), ("memory", 1)),
            make_pod(cpu="500m", memory="8Gi"),
            # (87*3 + 75)//4 = 84; (37*3 + 62)//4 = 43
            {"empty": 84, "used": 43},
            id="weighs resources",
        ),
        pytest.param(
            scoring("LeastAllocated", ("cpu", 0), ("memory", 1)),
            make_pod(cpu="500m", memory="8Gi"),
            {"empty": 81, "used": 49},
            id="counts a weight of 0 as 1",
        ),
        pytest.param(
            plugin(),
            make_pod(cpu="8", memory="8Gi"),
            # cpu 0, memory 75 -> 37; cpu 0, memory 62 -> 31
            {"empty": 37, "used": 31},
            id="scores 0 for an overcommitted node with LeastAllocated",
        ),
        pytest.param(
            scoring("MostAllocated"),
            make_pod(cpu="8", memory="8Gi"),
            # cpu 100, memory 25 -> 62; cpu 100, memory 37 -> 68
            {"empty": 62, "used": 68},
            id="scores at most 100 with MostAllocated",
        ),
        pytest.param(
            plugin(),
            make_pod(),
            # 100m and 200Mi by default: 97, 99 -> 196//2;
            # (4000-2100)*100//4000 = 47, (32768-4296)*100//32768 = 86 -> 133//2
            {"empty": 98, "used": 66},
            id="counts default requests for a pod without requests",
        ),
        pytest.param(
            scoring("LeastAllocated", ("cpu", 1), (GPU, 1)),
            make_pod(cpu="500m"),
            {"empty": 87, "used": 37},
            id="ignores an extended resource that the pod does not request",
        ),
        pytest.param(
            scoring("LeastAllocated", ("cpu", 1), (GPU, 1)),
            make_pod(cpu="500m", requests={GPU: 1}),
            {"empty": 87, "used": 37},
            id="ignores an extended resource that the node lacks",
        ),
        pytest.param(
            scoring("LeastAllocated", ("cpu", 1), ("pods", 1)),
            make_pod(cpu="500m"),
            {"empty": 87, "used": 37},
            id="ignores the number of pods",
        ),
        pytest.param(
            scoring("LeastAllocated", (GPU, 1)),
            make_pod(),
            {"empty": 0, "used": 0},
            id="scores 0 if no resource counts",
        ),
    ],
)
def test_score(judge: NodeResourcesFit, pod: Pod, wanted: dict[str, int]) -> None:
    assert scores(judge, pod, make_state([EMPTY, USED], [ON_USED])) == wanted


def test_pods_that_do_not_say_count_by_default_on_their_node_too() -> None:
    state = make_state([make_node("a", cpu="1", memory="1000Mi")], [make_pod("p", on="a")])
    # cpu (1000-100-100)*100//1000 = 80, memory (1000-200-200)*100//1000 = 60
    assert scores(plugin(), make_pod(), state) == {"a": 70}


def test_a_scalar_counts_where_it_is_asked_for() -> None:
    state = make_state(
        [make_node("a", example_com__gpu=4)], [make_pod("p", on="a", requests={GPU: 1})]
    )
    judge = scoring("MostAllocated", (GPU, 1))
    assert scores(judge, make_pod(requests={GPU: 1}), state) == {"a": 50}  # (1+1)*100//4


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        # The nodes are used to 10, 50 and 90 percent.
        pytest.param([(0, 10), (100, 0)], [90, 50, 10], id="follows a falling curve"),
        pytest.param(
            [(20, 2), (80, 8)], [20, 50, 80], id="is flat before the first and after the last point"
        ),
        pytest.param(
            [(0, 0), (40, 10), (100, 0)],
            [25, 84, 17],  # 100*10/40 = 25; 100 - trunc(100*10/60 = 16.7); 100 - trunc(83.3)
            id="truncates toward zero on a falling curve",
        ),
        pytest.param([(50, 7)], [70, 70, 70], id="is flat with a single point"),
    ],
)
def test_a_shape(points: list[tuple[int, int]], wanted: list[int]) -> None:
    shape = [{"utilization": used, "score": score} for used, score in points]
    judge = scoring(
        "RequestedToCapacityRatio", ("cpu", 1), requestedToCapacityRatio={"shape": shape}
    )
    nodes: list[Node] = [make_node(name, cpu="1") for name in "abc"]
    running = [make_pod(f"on-{n}", on=n, cpu=c) for n, c in (("b", "400m"), ("c", "800m"))]
    found = scores(judge, make_pod(cpu="100m"), make_state(nodes, running))
    assert found == dict(zip("abc", wanted, strict=True))


def test_the_ratio_leaves_resources_that_score_nothing_out_of_the_mean() -> None:
    judge = scoring("RequestedToCapacityRatio", requestedToCapacityRatio=SHAPE)
    state = make_state([make_node("a", cpu="1", memory="1000Gi")])
    # cpu 50, memory 1*100//1000 = 0 is left out
    assert scores(judge, make_pod(cpu="500m", memory="1Gi"), state) == {"a": 50}


# Args.


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param({}, [], id="the defaults"),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": SHAPE,
                }
            },
            [],
            id="a shape",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            ["requestedToCapacityRatio.shape needs at least one point"],
            id="no shape",
        ),
        pytest.param(
            {"scoringStrategy": {"requestedToCapacityRatio": SHAPE}},
            ["requestedToCapacityRatio goes only with type RequestedToCapacityRatio"],
            id="a shape for another type",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [
                            {"utilization": 50, "score": 11},
                            {"utilization": 50, "score": 5},
                            {"utilization": 101, "score": -1},
                        ]
                    },
                }
            },
            [
                "the utilization of shape points must grow within 0 to 100, not 50, 50, 101",
                "the score of shape points must lie within 0 to 10, not 11, 5, -1",
            ],
            id="points out of order and out of range",
        ),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            ["the weight of resource cpu must lie within 1 to 100, not 101"],
            id="too large a weight",
        ),
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": -1}]}},
            ["the weight of resource cpu must lie within 1 to 100, not -1"],
            id="a negative weight",
        ),
    ],
)
def test_problems_of_a_strategy(given: dict[str, Any], told: list[str]) -> None:
    assert list(args(**given).problems()) == [("scoringStrategy", text) for text in told]


def test_a_group_is_what_stands_before_the_slash() -> None:
    assert list(args(ignoredResourceGroups=["a.com", "a.com/b"]).problems()) == [
        ("ignoredResourceGroups", "'a.com/b' must not contain '/'; it is the part before it")
    ]


# Numbers near the end of 64 bits.


@pytest.mark.parametrize(
    ("judge", "used", "want"),
    [
        # (LARGEST - 1) * 100 // LARGEST = 99
        pytest.param(scoring("LeastAllocated", ("memory", 1)), 0, 99, id="takes it for empty"),
        # (LARGEST - 2**62) * 100 // LARGEST = 49
        pytest.param(scoring("LeastAllocated", ("memory", 1)), 2**62, 49, id="is exact"),
        pytest.param(scoring("LeastAllocated", ("memory", 1)), LARGEST, 0, id="sees it full"),
        # 2**62 * 100 // LARGEST = 50
        pytest.param(scoring("MostAllocated", ("memory", 1)), 2**62, 50, id="is exact in reverse"),
        pytest.param(
            scoring("RequestedToCapacityRatio", ("memory", 1), requestedToCapacityRatio=SHAPE),
            2**62,
            50,
            id="is exact along a curve",
        ),
    ],
)
def test_the_score_of_a_huge_node(judge: NodeResourcesFit, used: int, want: int) -> None:
    pods = [make_pod("there", on="huge", memory=used)] if used else []
    nodes = [make_node("huge", memory="9223372036854775807"), make_node("usual", memory="4Gi")]
    found = scores(judge, make_pod(memory=1), make_state(nodes, pods))
    assert found is not None
    usual = scores(judge, make_pod(memory=1), make_state(nodes[1:]))
    assert usual is not None
    assert found == {"huge": want, "usual": usual["usual"]}


@pytest.mark.parametrize("amount", ["9223372036854775807", "1e100", "8Ei"])
def test_pods_are_placed_beside_a_huge_node(amount: str) -> None:
    nodes = [make_node("huge", cpu=amount, memory=amount, pods=amount), make_node("usual")]
    assert place([plugin()], make_pod(cpu="1", memory="1Gi"), nodes).node_name == "huge"
    cordoned = [make_node("huge", cpu=amount, memory=amount, unschedulable=True), nodes[1]]
    decision = place([plugin(), NodeUnschedulable()], make_pod(cpu="1", memory="1Gi"), cordoned)
    assert decision.node_name == "usual"


@pytest.mark.parametrize("pods", [1, 2, 3, 4])
def test_pods_that_ask_for_too_much_leave_no_room_and_no_score(pods: int) -> None:
    huge = [make_pod(f"p{number}", on="a", cpu=0, memory=LARGEST) for number in range(pods)]
    state = make_state([make_node("a"), make_node("b")], huge)
    pod = make_pod(cpu="1", memory="1Gi")
    assert rejections(plugin(), pod, state) == {"a": ["Insufficient memory"]}
    # (75 + 0) // 2 = 37; (75 + 87) // 2 = 81
    assert scores(plugin(), pod, state) == {"a": 37, "b": 81}


def test_a_pod_that_asks_for_too_much_fits_nowhere() -> None:
    pods = [make_pod("there", on="huge", memory=1)]
    state = make_state([make_node("huge", memory="1e100"), make_node("usual")], pods)
    assert rejections(plugin(), make_pod(memory="1e100"), state) == {
        "huge": ["Insufficient memory"],
        "usual": ["Insufficient memory"],
    }
    assert scores(plugin(), make_pod(memory="1e100"), state) is not None
