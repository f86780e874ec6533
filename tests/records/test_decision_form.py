import pytest
from msgspec.structs import replace

from lowtide.records.decision_form import DecisionForm, EvictionForm, what_differs

RECORDED = DecisionForm(
    pod="default/web",
    uid="uid",
    scheduler_name="lowtide",
    attempt=1,
    node="a",
    nodes=3,
    feasible=2,
    best=["a", "b"],
    totals=[150, 140],
    scores={"Fit": [100, 90], "NetworkTraffic": [50, 50]},
)
REJECTED = DecisionForm(
    pod="default/web",
    uid="uid",
    scheduler_name="lowtide",
    attempt=1,
    nodes=3,
    unschedulable_plugins=["Fit"],
    reasons={"Insufficient cpu": 3},
)


@pytest.mark.parametrize(
    ("recorded", "replayed", "told"),
    [
        pytest.param(RECORDED, replace(RECORDED), "", id="is silent where nothing differs"),
        pytest.param(
            RECORDED,
            replace(RECORDED, pod="default/db", attempt=2),
            "pod default/db had its turn instead (attempt 2)",
            id="tells of another pod",
        ),
        pytest.param(
            RECORDED,
            replace(
                RECORDED,
                node="b",
                best=["b", "a"],
                totals=[190, 150],
                scores={"Fit": [90, 100], "NetworkTraffic": [100, 50]},
            ),
            "NetworkTraffic scores a 50, b 50, and in the replay b 100, a 50",
            id="names the first plugin that scores a node differently",
        ),
        pytest.param(
            RECORDED,
            replace(RECORDED, totals=[100, 90], scores={"Fit": [100, 90]}),
            "NetworkTraffic scores a 50, b 50, and in the replay nothing",
            id="names a plugin that is not asked",
        ),
        pytest.param(
            RECORDED,
            replace(RECORDED, nodes=4),
            "3 nodes are known by the recording, 4 by the replay",
            id="tells of other nodes",
        ),
        pytest.param(
            RECORDED,
            replace(RECORDED, node="b"),
            "the nodes that were equally good were taken in another order",
            id="tells of equal nodes",
        ),
        pytest.param(
            REJECTED,
            replace(REJECTED, unschedulable_plugins=["Taints"], reasons={"tainted": 3}),
            "Fit rejected it by the recording, Taints by the replay",
            id="tells who rejected",
        ),
        pytest.param(
            REJECTED,
            replace(REJECTED, reasons={}),
            "3 Insufficient cpu are the reasons by the recording, no reasons by the replay",
            id="tells the reasons",
        ),
        pytest.param(
            replace(REJECTED, eviction=EvictionForm("a", ["one"])),
            replace(REJECTED, eviction=EvictionForm("a", ["two"])),
            "other pods are evicted",
            id="tells of other victims",
        ),
    ],
)
def test_what_differs(recorded: DecisionForm, replayed: DecisionForm, told: str) -> None:
    assert what_differs(recorded, replayed) == told
