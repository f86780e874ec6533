"""What single change would have sent a pod to another node: worked out from a record when asked."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, floor

import msgspec

from lowtide.framework.plugin import MAX_SCORE
from lowtide.records.record import DecisionRecord, NodeRecord


class Flip(msgspec.Struct, frozen=True):
    """With `weight` instead of `weight_now` for the plugin, `node` would have been best, alone or
    with others that have as many points."""

    plugin: str
    weight_now: int
    weight: int
    node: str
    is_alone: bool = True

    @property
    def in_words(self) -> str:
        best = "best" if self.is_alone else "among the best"
        if self.weight == 0:
            return f"without {self.plugin} {self.node} would have been {best}"
        return (
            f"with the weight {self.weight} instead of {self.weight_now} for {self.plugin} "
            f"{self.node} would have been {best}"
        )


class ScoreFlip(msgspec.Struct, frozen=True):
    """Had the plugin given the runner-up `points` of 100 instead of `points_now`, that would have
    been chosen."""

    plugin: str
    node: str
    points_now: int
    points: int

    @property
    def in_words(self) -> str:
        return (
            f"had {self.plugin} given {self.node} {self.points} points of {MAX_SCORE} instead of "
            f"{self.points_now}, it would have been best"
        )


def score_flips_of(record: DecisionRecord) -> list[ScoreFlip]:
    """For each plugin that could have given the runner-up enough; the smallest change first. A
    runner-up with as many points lacks none: it only was not its turn."""
    chosen = record.chosen
    other = next((each for each in record.best if each.node == record.runner_up), None)
    if chosen is None or other is None or not record.margin or _was_not_by_points(record):
        return []
    found = []
    for plugin, weight in _weights(record).items():
        now = other.scores[plugin].normalized
        points = now + record.margin // weight + 1
        if points <= MAX_SCORE:
            found.append(ScoreFlip(plugin, other.node, now, points))
    return sorted(found, key=lambda each: (each.points - each.points_now, each.plugin))


def flips_of(record: DecisionRecord) -> list[Flip]:
    """For each plugin the nearest other weight, from 0 up, that changes the choice among the nodes
    that were kept; those that take the smallest change of the total come first. Nodes with as many
    points as the chosen one need no other weight."""
    chosen = record.chosen
    if chosen is None or chosen.total is None or _was_not_by_points(record):
        return []
    found: list[Flip] = []
    for plugin, weight in _weights(record).items():
        weights = [_nearest(chosen, other, plugin, weight) for other in record.best]
        known = [each for each in weights if each is not None]
        if known:
            nearest = min(known, key=lambda each: (abs(each - weight), each))
            best = _best_with(record, plugin, weight, nearest)
            found.append(Flip(plugin, weight, nearest, best[0], is_alone=len(best) == 1))
    return sorted(found, key=lambda flip: (abs(flip.weight - flip.weight_now), flip.plugin))


def _best_with(record: DecisionRecord, plugin: str, weight: int, other_weight: int) -> list[str]:
    def total(node: NodeRecord) -> int:
        return (node.total or 0) + (other_weight - weight) * node.scores[plugin].normalized

    most = max(map(total, record.best))
    return [each.node for each in record.best if total(each) == most]


def _was_not_by_points(record: DecisionRecord) -> bool:
    return record.by_nomination or (record.margin is not None and record.margin < 0)


def _weights(record: DecisionRecord) -> Mapping[str, int]:
    """By plugin; of those that gave every node nothing, they are not known and do not matter."""
    return {
        plugin: score.weighted // score.normalized
        for node in record.best
        for plugin, score in node.scores.items()
        if score.normalized
    }


def _nearest(chosen: NodeRecord, other: NodeRecord, plugin: str, weight: int) -> int | None:
    """The weight nearest to what it was with which `other` has more points than the chosen."""
    if other.node == chosen.node or chosen.total is None or other.total is None:
        return None
    behind = chosen.total - other.total
    ahead_by_plugin = other.scores[plugin].normalized - chosen.scores[plugin].normalized
    if behind == 0 or ahead_by_plugin == 0:
        return None
    # behind < change * ahead_by_plugin
    change = Fraction(behind, ahead_by_plugin)
    needed = floor(change) + 1 if ahead_by_plugin > 0 else ceil(change) - 1
    return weight + needed if weight + needed >= 0 else None


def compared(record: DecisionRecord, node_name: str) -> Iterator[tuple[str, int, int]]:
    """By plugin: what it gave the chosen node, and the other one; the largest differences first."""
    chosen = record.chosen
    other = next((each for each in record.best if each.node == node_name), None)
    if chosen is None or other is None:
        return
    rows = [
        (plugin, score.weighted, other.scores[plugin].weighted)
        for plugin, score in chosen.scores.items()
    ]
    yield from sorted(rows, key=lambda row: (-abs(row[1] - row[2]), row[0]))
