"""The last decisions, bounded in number."""

import numpy as np
from msgspec.structs import replace
from tests.records.kept_decisions import Keeping

from lowtide.framework.decision import ScoreTable
from lowtide.records.record import DecisionRecord
from lowtide.scheduler.actions import AnsweredPriorities
from lowtide.scheduler.decide import KEPT_NODES
from lowtide.testing import make_node, make_pod


def test_decisions_are_numbered_and_the_oldest_go_first() -> None:
    keeping = Keeping(make_node(), kept_decisions=3)
    keeping.decide(*(make_pod(f"pod-{number}") for number in range(5)))
    ring = keeping.ring
    assert ring.last_number == 5
    assert [each.number for each in ring.after(0)] == [3, 4, 5]
    assert [each.number for each in ring.after(4)] == [5]
    assert list(ring.after(5)) == []


def test_what_was_decided_about_a_pod_comes_newest_first() -> None:
    keeping = Keeping(make_node(cpu="1"))
    keeping.decide(make_pod("web", cpu="2"), make_pod("other"))
    keeping.bench.give()
    keeping.bench.delete(make_pod("web", cpu="2"))
    keeping.decide(make_pod("web", cpu="500m"))
    found = [
        (each.number, each.decided.decision.node_name)
        for each in keeping.ring.decisions_about("default/web")
    ]
    assert found == [(3, "node"), (1, None)]


def test_the_newest_of_a_uid_is_forgotten_with_its_decision() -> None:
    keeping = Keeping(make_node(), kept_decisions=2)
    first, second, third = keeping.decide(*(make_pod(name) for name in "abc"))
    ring = keeping.ring
    assert ring.newest_of("default/a") is None
    assert (ring.newest_of("default/b"), ring.newest_of("default/c")) == (second, third)
    assert first.number == 1


def test_where_somebody_else_put_a_pod_is_told_of_the_newest_advice_alone() -> None:
    keeping = Keeping(make_node())
    (decided,) = keeping.decide(make_pod("own"))
    ring = keeping.ring
    advice = replace(decided.decided, asked="filter")
    first, second = ring.note(advice, 0.0), ring.note(advice, 0.0)
    ring.went_to("default/own", "elsewhere")
    assert (decided.is_on, first.is_on, second.is_on) == (None, None, "elsewhere")
    ring.went_to("default/unknown", "node")
    ring.note(decided.decided, 0.0)
    ring.went_to("default/own", "node")
    assert [each.is_on for each in ring.decisions_about("default/own")] == [
        None,
        "elsewhere",
        None,
        None,
    ]


def test_of_advice_about_more_nodes_than_are_kept_the_priorities_are_cut_too() -> None:
    count = KEPT_NODES + 2
    keeping = Keeping(*(make_node(f"node-{number:02}") for number in range(count)))
    (decided,) = keeping.decide(make_pod("web"))
    state = keeping.bench.machine.state
    nothing = np.empty((0, count), np.int64)
    scores = ScoreTable(
        tuple(state.names[row] for row in range(count)),
        np.arange(count),
        np.arange(count)[::-1],
        (),
        (),
        nothing,
        nothing,
    )
    answered = np.arange(count)[::-1] % 11
    advice = replace(
        decided.decided,
        decision=replace(decided.decided.decision, scores=scores),
        asked="prioritize",
        priorities=AnsweredPriorities.from_answered(answered, answered),
    )
    told = DecisionRecord.from_kept(keeping.ring.note(advice, 0.0)).priorities
    assert told is not None
    assert list(told.by_node) == list(scores.node_names[:KEPT_NODES])
    assert list(told.by_node.values()) == answered[:KEPT_NODES].tolist()
    assert (told.highest, told.highest_count) == (10, 2)
