"""What the page shows of a running scheduler, over HTTP as it is served."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.advisor.test_advisor import Heard, Unreadable
from tests.records.kept_decisions import GIGABIT, Keeping
from tests.records.test_record import BUSY_AND_QUIET
from tests.scheduler.conftest import START
from tests.scheduler.test_machine_asked import UNREADABLE
from tests.scheduler.test_unbound_pods import REJECTED
from tests.server.conftest import RawClient, running

from lowtide.advisor.advisor import Advisor
from lowtide.app.decider import Decider
from lowtide.app.diagnosing import Diagnosis, FindingShown
from lowtide.app.shown import Shown
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.kube.following import StaleWatches
from lowtide.objects.events import Added
from lowtide.records.history import History
from lowtide.server.api_routes import Ask, at_once
from lowtide.server.serving import Serving, make_server, page_and_api
from lowtide.telemetry.metrics import MeasuredNumbers, SourceNumbers
from lowtide.testing import make_node, make_pod, make_profile, make_reading

ZONED = [
    make_node("node-1", labels={"topology.kubernetes.io/zone": "z1", "rack": "r1"}),
    make_node("node-2", labels={"topology.kubernetes.io/zone": "z2"}),
]
NOTHING = SourceNumbers(nodes_by_state={}, age_seconds=None, polls={})


class Showing:
    def __init__(self, *nodes: Any) -> None:
        self.keeping = Keeping(*nodes)
        self.history = History()
        self.shown = self.shown_of(self.keeping.bench.machine)
        self.serving = Serving(port=0)
        self.ask_by: Ask = at_once
        self.diagnosis: Diagnosis | None = None
        self.stale_watches: StaleWatches | None = None

    def shown_of(self, decider: Decider) -> Shown:
        return Shown(
            decider,
            self.keeping.ring,
            self.history,
            mode="scheduler",
            clock=self.keeping.clock,
            measured=self.measured,
            is_leader=lambda: True,
            diagnosis=lambda: self.diagnosis,
            stale_watches=lambda: self.stale_watches,
        )

    def measured(self) -> MeasuredNumbers:
        by_state = {"fresh": 1, "stale": 0, "missing": 1, "implausible": 0}
        traffic = SourceNumbers(nodes_by_state=by_state, age_seconds=3.0, polls={})
        return MeasuredNumbers(
            traffic=traffic, is_traffic_ignored=False, usage=NOTHING, queries=NOTHING
        )

    async def ask(self, path: str, host: str = "localhost") -> tuple[int, Any]:
        routes = page_and_api(self.serving, self.shown, self.ask_by)
        server = make_server(self.serving, routes)
        async with running(server):
            client = await RawClient.connected(server.address.port)
            answer = await client.ask(path, host)
            await client.close()
        is_json = answer.headers["content-type"].startswith("application/json")
        return answer.status, json.loads(answer.body) if is_json else answer.body.decode()


async def test_the_cluster_has_an_element_per_node_in_each_list() -> None:
    showing = Showing(*ZONED)
    showing.keeping.publish(BUSY_AND_QUIET, sampled_at=START)
    showing.keeping.decide(make_pod("web", cpu="1"))
    status, cluster = await showing.ask("/api/cluster")
    assert status == 200
    assert cluster == {
        "time": START,
        "mode": "scheduler",
        "version": 1,
        "names": ["node-1", "node-2"],
        "zones": ["z1", "z2"],
        "racks": ["r1", None],
        "share": [0.6, 0.14],  # with the pod that was just placed
        "receive": [6 * GIGABIT, GIGABIT],
        "transmit": [GIGABIT, GIGABIT],
        "capacity": [10 * GIGABIT, 10 * GIGABIT],
        "expected_receive": [0.0, 50e6],
        "expected_transmit": [0.0, 50e6],
        "state": "ff",
        "is_hot": "00",
        "pods": [0, 1],
        "cpu": [0.0, 0.25],
    }


async def test_names_are_told_again_only_where_nodes_or_their_racks_changed() -> None:
    showing = Showing(*ZONED)
    _, first = await showing.ask("/api/cluster")
    _, second = await showing.ask(f"/api/cluster?known={first['version']}")
    assert "names" not in second
    assert "zones" not in second
    showing.keeping.bench.give(Added(make_node("node-2", labels={"rack": "r9"})))
    _, third = await showing.ask(f"/api/cluster?known={first['version']}")
    assert third["racks"] == ["r1", "r9"]


async def test_nothing_measured_is_null_and_missing() -> None:
    showing = Showing(*ZONED)
    _, cluster = await showing.ask("/api/cluster")
    assert (cluster["share"], cluster["state"], cluster["is_hot"]) == ([None, None], "mm", "00")


async def test_an_empty_cluster_is_shown() -> None:
    _, cluster = await Showing().ask("/api/cluster")
    assert (cluster["names"], cluster["share"], cluster["state"]) == ([], [], "")


async def test_decisions_since_a_number() -> None:
    showing = Showing(*ZONED)
    showing.keeping.decide(make_pod("one"), make_pod("two"), make_pod("huge", cpu="64"))
    _, all_of_them = await showing.ask("/api/decisions")
    assert [each["pod"] for each in all_of_them["decisions"]] == [
        "default/one",
        "default/two",
        "default/huge",
    ]
    assert all_of_them["last"] == 3
    _, newer = await showing.ask("/api/decisions?after=2")
    assert [(each["seq"], each["node"]) for each in newer["decisions"]] == [(3, None)]
    _, newest = await showing.ask("/api/decisions?limit=1")
    assert [each["seq"] for each in newest["decisions"]] == [3]
    _, of_another_process = await showing.ask("/api/decisions?after=99")
    assert of_another_process == all_of_them


async def test_the_decisions_about_one_pod() -> None:
    showing = Showing(*ZONED)
    showing.keeping.decide(make_pod("web"))
    status, found = await showing.ask("/api/decisions/default/web")
    assert (status, found["pod"], len(found["records"])) == (200, "default/web", 1)
    assert len(found["records"][0]["best"]) == 2
    status, missing = await showing.ask("/api/decisions/default/other")
    assert (status, missing["error"].startswith("no decision about pod default/other")) == (
        404,
        True,
    )


async def test_a_node_with_its_pods_its_history_and_who_is_rejected_there() -> None:
    showing = Showing(make_node("node-1", cpu="1", taints=[{"key": "a", "effect": "NoExecute"}]))
    tolerations = [{"operator": "Exists"}]
    showing.keeping.decide(make_pod("web", cpu="500m", tolerations=tolerations))
    showing.keeping.decide(make_pod("big", cpu="2", tolerations=tolerations))
    fields = {"receive": 1.0, "transmit": 2.0, "share": 0.5, "capacity": 4.0}
    showing.history.note(make_reading({"node-1": fields}), 7.0)
    status, node = await showing.ask("/api/nodes/node-1")
    assert status == 200
    assert node["pods"] == [{"pod": "default/web", "cpu": 500, "memory": 0, "is_assumed": True}]
    assert (node["allocatable"]["cpu"], node["requested"]["cpu"]) == (1000, 500)
    assert node["taints"] == ["a=:NoExecute"]
    assert node["history"]["times"] == [7.0]
    assert node["rejections"] == [
        {"pod": "default/big", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
    ]
    assert await showing.ask("/api/nodes/other") == (404, {"error": "no node is called other"})


async def test_health() -> None:
    showing = Showing(*ZONED)
    showing.keeping.decide(make_pod("huge", cpu="64"))
    _, health = await showing.ask("/api/health")
    assert health["queue"] == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    (reading,) = health["readings"]
    assert (reading["fresh"], reading["missing"], reading["is_ignored"]) == (1, 1, False)
    assert (health["diagnosis"], health["stale_watches"]) == (None, None)


async def test_what_the_api_server_does_not_tell_of_is_shown() -> None:
    showing = Showing(*ZONED)
    showing.stale_watches = StaleWatches(START, ["pods", "nodes"], "it is away")
    _, health = await showing.ask("/api/health")
    assert health["stale_watches"] == {
        "since": START,
        "resources": ["pods", "nodes"],
        "reason": "it is away",
    }


async def test_what_the_doctor_says_is_shown() -> None:
    showing = Showing(*ZONED)
    finding = FindingShown(
        severity="note",
        code="link-capacity",
        text="the capacity should be stated",
        nodes=["node-1"],
        node_count=1,
        fix="kubectl annotate node node-1",
    )
    showing.diagnosis = Diagnosis(90.0, [finding])
    _, health = await showing.ask("/api/health")
    assert health["diagnosis"] == {
        "age_seconds": 90.0,
        "findings": [
            {
                "severity": "note",
                "code": "link-capacity",
                "text": "the capacity should be stated",
                "nodes": ["node-1"],
                "node_count": 1,
                "fix": "kubectl annotate node node-1",
            }
        ],
    }


async def test_a_gated_pod_is_told_by_whom_it_is_held() -> None:
    showing = Showing(*ZONED)
    showing.keeping.bench.give(Added(make_pod("held", gates=["example.com/wait"])))
    _, found = await showing.ask("/api/explain/default/held")
    assert found["waiting_for"].startswith("SchedulingGates keeps it out of the queue: ")
    assert found["records"] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/cluster?known=x", "known is a whole number from 0 up, not 'x'"),
        ("/api/decisions?after=-1", "after is a whole number from 0 up, not '-1'"),
        ("/api/decisions?limit=", "limit is a whole number from 0 up, not ''"),
    ],
)
async def test_what_is_no_number_is_rejected(path: str, text: str) -> None:
    assert await Showing(*ZONED).ask(path) == (400, {"error": text})


async def test_a_page_of_another_name_cannot_ask_on_loopback() -> None:
    status, text = await Showing(*ZONED).ask("/api/health", host="evil.example")
    assert (status, text["error"].partition(";")[0]) == (
        403,
        "the request is for the host 'evil.example'",
    )


@pytest.mark.parametrize(
    ("serving", "is_shown"),
    [
        pytest.param(Serving(), True, id="on loopback"),
        pytest.param(Serving(bind_address="0.0.0.0"), True, id="beyond loopback, for some"),
        pytest.param(Serving(bind_address="0.0.0.0", has_page=True), True, id="where it is wanted"),
        pytest.param(Serving(has_page=False), False, id="where it is not"),
    ],
)
def test_the_page_is_shown(serving: Serving, is_shown: bool) -> None:
    assert bool(page_and_api(serving, Showing().shown, at_once)) == is_shown


async def test_a_pod_of_the_same_name_is_not_explained_by_the_one_before() -> None:
    showing = Showing(make_node("node-1", cpu="2"))
    showing.keeping.decide(make_pod("web", uid="old", cpu="1"))
    showing.keeping.bench.delete(make_pod("web", uid="old"))
    showing.keeping.bench.give(Added(make_pod("web", uid="new", cpu="9")))
    _, found = await showing.ask("/api/explain/default/web")
    assert [each["uid"] for each in found["records"]] == ["old"]
    assert found["weight_changes"] == []
    assert [each["plugin"] for each in found["remedies"]] == ["NodeResourcesFit"]


async def test_what_cannot_be_judged_is_told_and_no_error_of_ours() -> None:
    showing = Showing(make_node("node-1", cpu="2"))
    pod = make_pod("odd", spec={"containers": [UNREADABLE]})
    showing.keeping.bench.give(Added(pod))
    showing.keeping.bench.take_turns()
    status, found = await showing.ask("/api/explain/default/odd")
    assert (status, found["waiting_for"].startswith("it cannot be judged now: ")) == (200, True)


async def test_a_plugin_of_an_extender_that_reads_what_cannot_be_read_is_told() -> None:
    plugins = {"lowtide": make_profile([Unreadable()])}
    advisor = Advisor(plugins, {"lowtide": ExtenderSettings()}, Heard())
    for each in (make_node("node-1"), replace(make_pod("web"), status=REJECTED)):
        advisor.step(Added(each), START)
    showing = Showing()
    showing.shown = showing.shown_of(advisor)
    status, node = await showing.ask("/api/nodes/node-1")
    reason = "a plugin read an invalid quantity: volume v"
    rejected = [{"pod": "default/web", "plugin": "", "reasons": [reason]}]
    assert (status, node["rejections"]) == (200, rejected)
    status, found = await showing.ask("/api/explain/default/web")
    assert (status, found["waiting_for"]) == (200, f"it cannot be judged now: {reason}")


async def test_a_node_without_cpu_is_shown_as_empty() -> None:
    showing = Showing(make_node("node-1", cpu="0"))
    _, cluster = await showing.ask("/api/cluster")
    assert cluster["cpu"] == [0.0]


async def test_a_capacity_that_was_guessed_is_told_so() -> None:
    showing = Showing(*ZONED)
    showing.keeping.publish(
        {**BUSY_AND_QUIET, "node-1": {"receive": GIGABIT, "transmit": GIGABIT}},
        sampled_at=START,
    )
    guessed = [
        (await showing.ask(f"/api/nodes/{name}"))[1]["reading"]["is_capacity_guessed"]
        for name in ("node-1", "node-2")
    ]
    assert guessed == [True, False]


async def test_who_cannot_look_in_time_is_told_why() -> None:
    async def never(look: Callable[[], Any], /) -> Any:
        raise TimeoutError("the plugins are busy")

    showing = Showing(*ZONED)
    showing.ask_by = never
    for path in ("cluster", "decisions", "decisions/default/web", "nodes/node-1", "health"):
        assert await showing.ask(f"/api/{path}") == (503, {"error": "the plugins are busy"})
    assert (await showing.ask("/api/explain/default/web"))[0] == 503
