"""What single change would have sent a pod elsewhere."""

import msgspec

from lowtide.records.flips import Flip, ScoreFlip, compared, flips_of, score_flips_of
from lowtide.records.record import DecisionRecord, NodeRecord, ScoreRecord

WEIGHTS = {"Traffic": 9, "Fit": 1}


def node(name: str, **points: int) -> NodeRecord:
    plugins = {
        plugin: ScoreRecord(raw=given, normalized=given, weighted=WEIGHTS[plugin] * given)
        for plugin, given in points.items()
    }
    return NodeRecord(name, sum(each.weighted for each in plugins.values()), plugins)


def record(*best: NodeRecord) -> DecisionRecord:
    totals = [each.total or 0 for each in best]
    return DecisionRecord(
        seq=1,
        time=0.0,
        pod="default/web",
        uid="1",
        scheduler="lowtide",
        attempt=1,
        waited_seconds=0.0,
        node=best[0].node if best else None,
        nodes=len(best),
        feasible=len(best),
        margin=totals[0] - totals[1] if len(best) > 1 else None,
        runner_up=best[1].node if len(best) > 1 else None,
        best=list(best),
    )


QUIET, ROOMY = node("quiet", Traffic=90, Fit=20), node("roomy", Traffic=80, Fit=100)


def test_the_nearest_weight_that_changes_the_choice() -> None:
    # 830 against 820: with 8 for Traffic it is 740 against 740, with 7 650 against 660.
    found = record(QUIET, ROOMY)
    assert found.margin == 10
    assert flips_of(found) == [Flip("Fit", 1, 2, "roomy"), Flip("Traffic", 9, 7, "roomy")]
    for flip in flips_of(found):
        totals = {
            each.node: sum(
                (flip.weight if plugin == flip.plugin else WEIGHTS[plugin]) * score.normalized
                for plugin, score in each.scores.items()
            )
            for each in found.best
        }
        assert max(totals, key=lambda name: totals[name]) == flip.node


def test_a_plugin_that_decides_alone() -> None:
    found = record(node("quiet", Traffic=50, Fit=20), node("roomy", Traffic=10, Fit=30))
    assert Flip("Traffic", 9, 0, "roomy") in flips_of(found)
    assert Flip("Traffic", 9, 0, "roomy").in_words == "without Traffic roomy would have been best"


def test_no_weight_helps_a_node_that_no_plugin_prefers() -> None:
    assert (
        flips_of(record(node("best", Traffic=50, Fit=50), node("worse", Traffic=40, Fit=40))) == []
    )


def test_points_that_the_runner_up_lacks() -> None:
    assert score_flips_of(record(QUIET, ROOMY)) == [ScoreFlip("Traffic", "roomy", 80, 82)]


def test_nothing_flips_where_nothing_was_compared() -> None:
    assert flips_of(record()) == score_flips_of(record(QUIET)) == []


def test_plugins_side_by_side_the_largest_difference_first() -> None:
    assert list(compared(record(QUIET, ROOMY), "roomy")) == [
        ("Traffic", 810, 720),
        ("Fit", 20, 100),
    ]
    assert list(compared(record(QUIET, ROOMY), "elsewhere")) == []


def test_of_several_that_flip_the_best_is_named() -> None:
    found = record(
        node("chosen", Traffic=50, Fit=20),
        node("first", Traffic=45, Fit=60),
        node("better", Traffic=44, Fit=70),
    )
    assert Flip("Fit", 1, 2, "better") in flips_of(found)


def test_a_pod_that_was_promised_its_node_is_not_there_by_points() -> None:
    found = msgspec.structs.replace(record(QUIET, ROOMY), by_nomination=True)
    assert flips_of(found) == score_flips_of(found) == []


def test_among_equal_nodes_only_the_turn_decides() -> None:
    # 830 each: another weight would only break the tie.
    equal = record(QUIET, node("equal", Traffic=89, Fit=29))
    assert equal.margin == 0
    assert flips_of(equal) == score_flips_of(equal) == []


def test_several_that_would_have_been_equal_are_among_the_best() -> None:
    found = record(
        node("quiet", Traffic=50, Fit=20),
        node("first", Traffic=10, Fit=30),
        node("second", Traffic=9, Fit=30),
    )
    flip = Flip("Traffic", 9, 0, "first", is_alone=False)
    assert flip in flips_of(found)
    assert flip.in_words == "without Traffic first would have been among the best"
