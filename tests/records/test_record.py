"""A decision in the form that people and programs read."""

import json

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.records.kept_decisions import GIGABIT, Keeping
from tests.scheduler.conftest import START

from lowtide.records.record import (
    DecisionLine,
    DecisionRecord,
    PreemptionRecord,
    PrioritiesRecord,
    ReadingRecord,
    ScoreRecord,
    TrafficRecord,
    in_short,
    lead_in_words,
    priorities_in_words,
)
from lowtide.scheduler.actions import AnsweredPriorities, Decided
from lowtide.testing import ManualClock, make_node, make_pod

NODES = [make_node("node-1"), make_node("node-2")]
BUSY_AND_QUIET = {
    "node-1": {"receive": 6 * GIGABIT, "transmit": GIGABIT, "capacity": 10 * GIGABIT},
    "node-2": {"receive": GIGABIT, "transmit": GIGABIT, "capacity": 10 * GIGABIT},
}


def test_a_record_has_the_scores_the_reading_and_the_margin() -> None:
    keeping = Keeping(*NODES)
    keeping.publish(BUSY_AND_QUIET, sampled_at=START - 4)
    record = keeping.record(make_pod("web", cpu="100m"))
    assert (record.pod, record.node, record.runner_up) == ("default/web", "node-2", "node-1")
    assert (record.nodes, record.feasible, record.attempt, record.seq) == (2, 2, 1, 1)
    best, other = record.best
    assert (best.node, other.node) == ("node-2", "node-1")
    # 10 % is measured, and 4 % of 10 Gb/s is the pod itself.
    assert best.scores["NetworkTraffic"] == ScoreRecord(raw=86, normalized=86, weighted=9 * 86)
    assert best.total == sum(each.weighted for each in best.scores.values())
    assert other.total is not None
    assert best.total is not None
    assert record.margin == best.total - other.total == 9 * (86 - 36)
    assert record.reading == ReadingRecord(
        age_seconds=4.0, window_seconds=60.0, expected_receive=50e6, expected_transmit=50e6
    )
    assert other.measured == TrafficRecord(
        share=0.6,
        share_with_added=0.6,
        receive=6 * GIGABIT,
        transmit=GIGABIT,
        capacity=10 * GIGABIT,
        is_capacity_guessed=False,
        state="fresh",
        added_receive=0.0,
        added_transmit=0.0,
    )


def test_what_was_placed_before_is_added_and_the_pod_itself_is_not() -> None:
    keeping = Keeping(*NODES)
    keeping.publish(BUSY_AND_QUIET, sampled_at=START - 4)
    first, second = keeping.decide(make_pod("first"), make_pod("second"))
    by_pod = [
        {
            each.node: each.measured.added_receive
            for each in DecisionRecord.from_kept(kept).best
            if each.measured
        }
        for kept in (first, second)
    ]
    assert by_pod == [{"node-1": 0.0, "node-2": 0.0}, {"node-1": 0.0, "node-2": 50e6}]


def test_what_is_kept_does_not_change_with_what_comes_later() -> None:
    keeping = Keeping(*NODES)
    keeping.publish(BUSY_AND_QUIET, sampled_at=START - 4)
    (kept,) = keeping.decide(make_pod("web"))
    before = DecisionRecord.from_kept(kept)
    keeping.publish({"node-1": {"receive": 0.0}}, sampled_at=START)
    keeping.decide(make_pod("next"))
    keeping.bench.delete(*NODES)
    assert DecisionRecord.from_kept(kept) == before


def test_a_pod_that_fits_nowhere_has_reasons_instead_of_scores() -> None:
    keeping = Keeping(*NODES)
    record = keeping.record(make_pod("huge", cpu="64"))
    assert (record.node, record.best, record.margin) == (None, [], None)
    assert record.reasons == {"Insufficient cpu": 2}
    assert record.unschedulable_plugins == ["NodeResourcesFit"]
    assert record.message is not None
    assert record.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_pod_that_takes_the_place_of_others_names_them() -> None:
    keeping = Keeping(make_node("node-1", cpu="1"))
    keeping.bench.place(make_pod("small", cpu="800m"))
    keeping.bench.end("small")
    keeping.bench.confirm(make_pod("small", cpu="800m"), "node-1")
    record = keeping.record(make_pod("important", cpu="800m", priority=10))
    assert record.preemption == PreemptionRecord("node-1", ["default/small"])


def test_an_only_node_is_not_scored_but_measured() -> None:
    keeping = Keeping(NODES[0])
    keeping.publish({"node-1": BUSY_AND_QUIET["node-1"]}, sampled_at=START)
    record = keeping.record(make_pod("web"))
    assert [(each.node, each.total, each.scores) for each in record.best] == [("node-1", None, {})]
    assert record.chosen is not None
    assert record.chosen.measured is not None
    assert record.chosen.measured.share == 0.6


@pytest.mark.parametrize("is_measured", [True, False], ids=["measured", "not measured"])
def test_a_record_goes_through_json_as_it_is(is_measured: bool) -> None:
    keeping = Keeping(*NODES)
    if is_measured:
        keeping.publish(BUSY_AND_QUIET, sampled_at=START)
    record = keeping.record(make_pod("web"))
    assert msgspec.json.decode(msgspec.json.encode(record), type=DecisionRecord) == record
    assert json.loads(msgspec.json.encode(record))["best"][0]["scores"]["NodeResourcesFit"]


def test_the_time_of_each_plugin_is_told() -> None:
    ticks = ManualClock(0.0)

    def clock() -> float:
        ticks.advance(0.001)
        return ticks()

    record = Keeping(*NODES, clock=clock).record(make_pod("web"))
    assert record.seconds_by_plugin["NodeResourcesFit"] == pytest.approx(0.002)  # filter and score
    assert record.seconds_by_plugin["NodeUnschedulable"] == pytest.approx(0.001)
    assert "NodeName" not in record.seconds_by_plugin  # which has nothing to say of such a pod


def test_a_decision_in_short() -> None:
    keeping = Keeping(*NODES)
    keeping.publish(BUSY_AND_QUIET, sampled_at=START)
    record = keeping.record(make_pod("web"))
    line = DecisionLine.from_kept(next(keeping.ring.decisions_about("default/web")))
    assert record.chosen is not None
    total = record.chosen.total
    assert total is not None
    assert record.margin is not None
    assert (line.node, line.total, line.margin, line.share) == ("node-2", total, record.margin, 0.1)
    assert (
        in_short(record)
        == f"node-2: traffic 10% of 10Gbit/s, score {total}, next node-1 {total - record.margin}"
    )


def test_equal_nodes_are_called_equal_in_short() -> None:
    record = Keeping(*NODES).record(make_pod("web"))
    assert record.chosen is not None
    assert (record.margin, record.runner_up) == (0, "node-2")
    assert in_short(record) == (
        f"node-1: score {record.chosen.total}, as node-2 has: equal nodes take turns"
    )


@pytest.mark.parametrize(
    ("margin", "asked", "words"),
    [
        pytest.param(9, "", "9 points ahead of node-2", id="ahead"),
        pytest.param(1, "", "1 point ahead of node-2", id="ahead by one"),
        pytest.param(0, "", "as many points as node-2: equal nodes take turns", id="equal"),
        pytest.param(
            0, "prioritize", "as many points as node-2", id="equal, and others choose among them"
        ),
        pytest.param(-2, "", "2 points behind node-2", id="behind"),
    ],
)
def test_how_far_a_node_is_ahead_of_the_next(margin: int, asked: str, words: str) -> None:
    record = Keeping(*NODES).record(make_pod("web"))
    assert lead_in_words(replace(record, margin=margin, extender_verb=asked)) == words


def test_what_another_scheduler_was_answered_is_beside_our_points() -> None:
    keeping = Keeping(*NODES)
    (kept,) = keeping.decide(make_pod("web"))
    assert DecisionRecord.from_kept(kept).priorities is None
    told = AnsweredPriorities(np.array([7, 7]), highest=7, highest_count=4)
    decided = replace(kept.decided, asked="prioritize", priorities=told)
    record = DecisionRecord.from_kept(keeping.ring.note(decided, START))
    assert record.priorities == PrioritiesRecord({"node-1": 7, "node-2": 7}, 7, 4)


@pytest.mark.parametrize(
    ("highest", "count", "words"),
    [
        pytest.param(
            9, 1, "node-1 alone was answered 9 of 10, the most; kube-scheduler adds", id="one"
        ),
        pytest.param(
            9,
            3,
            "3 of 5 nodes were answered 9 of 10, the most; kube-scheduler picks among equal ones "
            "by itself, and adds",
            id="some are equal",
        ),
        pytest.param(
            0,
            5,
            "all 5 nodes were answered 0 of 10; kube-scheduler picks among equal ones by itself, "
            "and adds",
            id="all are equal",
        ),
    ],
)
def test_ties_in_what_another_scheduler_was_answered(highest: int, count: int, words: str) -> None:
    record = replace(
        Keeping(*NODES).record(make_pod("web")),
        nodes=5,
        priorities=PrioritiesRecord({"node-1": highest}, highest, count),
    )
    assert priorities_in_words(record) == f"{words} its own scores."


def test_what_is_no_rate_expects_nothing_of_pods() -> None:
    keeping = Keeping(*NODES, measure="sumOverTime", scoring="relative")
    keeping.publish(BUSY_AND_QUIET, sampled_at=START)
    record = keeping.record(make_pod("web"))
    assert record.chosen is not None
    assert record.chosen.measured is not None
    assert record.chosen.measured.added_receive == 0.0


def test_the_chosen_of_very_many_equal_nodes_is_in_its_record() -> None:
    keeping = Keeping(*(make_node(f"node-{number}") for number in range(60)))
    for number in range(58):
        record = keeping.record(make_pod(f"pod-{number}"))
        assert record.chosen is not None
        assert record.margin == 0
        assert len(record.best) == len({each.node for each in record.best}) == 20


@pytest.mark.parametrize(
    ("direction", "share"), [("receive", 0.64), ("transmit", 0.14), ("sum", 0.39), ("max", 0.64)]
)
def test_the_share_counts_the_direction_that_is_asked_for(direction: str, share: float) -> None:
    keeping = Keeping(NODES[0], direction=direction)
    keeping.publish({"node-1": BUSY_AND_QUIET["node-1"]}, sampled_at=START)
    keeping.decide(make_pod("first"))
    second = keeping.record(make_pod("second"))
    assert second.chosen is not None
    assert second.chosen.measured is not None
    assert second.chosen.measured.share_with_added == pytest.approx(share)


def test_what_is_kept_of_a_decision_in_full_is_as_much_as_of_any_other() -> None:
    keeping = Keeping(*(make_node(f"node-{number}") for number in range(60)))
    machine = keeping.bench.machine
    full = machine.decided_now(make_pod("web"), START)
    assert len(full.scores.node_names) == 60
    kept = keeping.ring.note(Decided(full, 1, START), START)
    assert len(kept.decided.decision.scores.node_names) == 20
    assert kept.decided.decision.scores.raw.shape[1] == 20
    assert kept.decided.decision.scores.raw.base is None


def test_nothing_measured_is_kept_where_the_table_has_changed_meanwhile() -> None:
    keeping = Keeping(*NODES, make_node("node-3"))
    keeping.publish(BUSY_AND_QUIET, sampled_at=START)
    decision = keeping.bench.machine.decided_now(make_pod("web"), START)
    keeping.bench.delete(NODES[0])
    kept = keeping.ring.note(Decided(decision, 1, START), START)
    assert kept.measured is None
    assert DecisionRecord.from_kept(kept).node == decision.node_name


def test_a_promised_node_is_no_only_one() -> None:
    keeping = Keeping(*NODES)
    record = keeping.record(make_pod("web", nominated="node-1"))
    assert in_short(record) == "node-1: it was promised to the pod"
    assert in_short(Keeping(NODES[0]).record(make_pod("web"))) == "node-1: no other node was left"


def test_of_an_only_node_the_pod_itself_is_not_counted_in() -> None:
    keeping = Keeping(NODES[0])
    keeping.publish({"node-1": BUSY_AND_QUIET["node-1"]}, sampled_at=START)
    added = []
    for name in ("first", "second"):
        record = keeping.record(make_pod(name))
        assert record.chosen is not None
        assert record.chosen.measured is not None
        added.append(record.chosen.measured.added_receive)
    assert added == [0.0, 50e6]
