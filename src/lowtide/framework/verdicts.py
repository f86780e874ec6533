"""What the rules of one profile say about one shape of pod on every node, kept between pods.

Placing a pod changes one row; only the rules that read what changed judge that row again.
`Verdicts` keeps one `Verdict` per shape, bounded in bytes; `decide` reads it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lowtide.cluster.changes import EVERY_ROW, NODE, NODES, OTHERS, PODS, ROW
from lowtide.cluster.columns import BoolArray, IntArray, Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection, ScoreTable
from lowtide.framework.plugin import MAX_SCORE, PluginError, PodRejection, Rejection, reads_of
from lowtide.framework.profile import Profile
from lowtide.framework.scaling import scaled
from lowtide.objects.pod import Pod, shape_of

DEFAULT_MAX_BYTES = 128 * 1024 * 1024
_MOST_REASONS = 64
_NEVER = -1

_Asked = tuple[str, int]  # an extension point, and the number of the rule there


class Verdicts:
    def __init__(
        self, profile: Profile, state: ClusterState, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self.profile = profile
        self.state = state
        self._max_bytes = max_bytes
        self._by_shape: OrderedDict[bytes, Verdict] = OrderedDict()

    def of(self, pod: Pod) -> "Verdict":
        """The verdict on this pod's shape, true for the state as it is now."""
        shape = shape_of(pod)
        verdict = self._by_shape.get(shape)
        if verdict is None:
            verdict = self._by_shape[shape] = Verdict(self.profile, self.state, pod)
            self._drop_oldest()
        else:
            self._by_shape.move_to_end(shape)
        verdict.refresh()
        return verdict

    def object_changed(self, kind: type) -> None:
        """An object of this type changed: every row is stale for the rules that depend on it."""
        for verdict in self._by_shape.values():
            verdict.object_changed(kind)

    def _drop_oldest(self) -> None:
        while len(self._by_shape) > 1 and self._bytes() > self._max_bytes:
            self._by_shape.popitem(last=False)

    def _bytes(self) -> int:
        # Verdicts of one table are about equally large: the newest stands for all.
        newest = next(reversed(self._by_shape.values()))
        return newest.bytes_when_full * len(self._by_shape)


class Verdict:
    def __init__(self, profile: Profile, state: ClusterState, pod: Pod) -> None:
        self.pod = pod
        self.filters = tuple(profile.at("filter"))
        self.scorers = profile.scorers
        self._pre_filters = tuple(profile.at("preFilter"))
        self._state = state
        self._capacity = 0
        self._judged_at: dict[_Asked, int] = {}
        self._rejections = [_Rejections(rule.name) for rule in self.filters]
        self._pod_rejections: dict[int, PodRejection] = {}
        self._narrowed_to: dict[int, frozenset[str]] = {}
        self._narrowed: dict[int, BoolArray] = {}
        self._first: npt.NDArray[np.int16] = np.empty(0, np.int16)
        self._feasible: BoolArray = np.empty(0, np.bool_)
        self._scores = [_Scores(weighted.rule, weighted.weight) for weighted in self.scorers]
        self._scored_count = 0
        self._ranked: IntArray = np.empty(0, np.int64)
        self._refiltered: Rows | None = None  # since the last scores; None: every row

    # What decide asks.

    @property
    def feasible(self) -> BoolArray:
        return self._feasible[: self._state.count]

    @property
    def pod_rejection(self) -> tuple[str, PodRejection] | None:
        """The rule that refuses the pod everywhere, and why.

        The first for which evicting would not help; else the last of the others, as kube reports.
        """
        found = None
        for number, rejection in sorted(self._pod_rejections.items()):
            found = (self._pre_filters[number].name, rejection)
            if not rejection.eviction_helps:
                break
        return found

    def refresh(self) -> None:
        """Judges the stale rows again by the filters."""
        self._make_room()
        stale = _Stale(self._state, self._judged_at)
        touched = [
            *self._refresh_pre_filters(stale),
            *(
                self._judge_filter(number, rule, rows, stale)
                for number, rule in enumerate(self.filters)
                if (rows := stale.rows(("filter", number), rule)) is not None
            ),
        ]
        stale.done()
        if touched:
            self._settle(_union(touched, self._state.count))

    def rank(self) -> IntArray:
        """Total score per row; below 0 where the node is not feasible."""
        self._refresh_scores()
        return self._ranked[: self._state.count]

    def rank_among(self, feasible: BoolArray) -> IntArray:
        """The same for fewer feasible nodes than the filters left: nothing of it is kept."""
        self._refresh_scores()
        total = np.zeros(self._state.count, np.int64)
        for scores in self._scores:
            if scores.has_opinion:
                total += scores.weight * scores.normalized_among(feasible)
        return np.where(feasible, total if self._has_scores else total + 1, -1)

    def scores_of(
        self, rows: list[int], ranked: IntArray, feasible: BoolArray | None = None
    ) -> ScoreTable:
        """What each rule with an opinion says of these rows; `feasible` as in `rank_among`."""
        opinions = [scores for scores in self._scores if scores.has_opinion]
        return ScoreTable(
            node_names=tuple(self._state.names[row] for row in rows),
            totals=ranked[rows],
            rules=tuple(scores.rule.name for scores in opinions),
            weights=tuple(scores.weight for scores in opinions),
            raw=tuple(scores.raw[rows] for scores in opinions),
            normalized=tuple(
                (scores.normalized if feasible is None else scores.normalized_among(feasible))[rows]
                for scores in opinions
            ),
        )

    def rejection_at(self, row: int) -> NodeRejection | None:
        first = int(self._first[row])
        if first < 0:
            excluded_by = tuple(
                self._pre_filters[number].name
                for number, kept in self._narrowed.items()
                if not kept[row]
            )
            names = " ".join(self._pre_filters[number].name for number in sorted(self._narrowed))
            return NodeRejection(
                plugin="",
                reasons=(f"node(s) didn't satisfy plugin(s) [{names}]",),
                eviction_helps=False,
                excluded_by=excluded_by,
            )
        if first == len(self.filters):
            return None
        by = self._rejections[first]
        return by.as_node_rejection(row, self.rejections_besides(row, by.name))

    def rejections_besides(self, row: int, name: str) -> tuple[NodeRejection, ...]:
        """What the other filters say of a row, each on its own."""
        return tuple(
            each.as_node_rejection(row)
            for each in self._rejections
            if each.name != name and each.refuses(row)
        )

    def rejections_on(self, nodes: Nodes) -> dict[int, NodeRejection]:
        """By position: what the filters refuse on a face with overlays. Nothing of it is kept."""
        found: dict[int, NodeRejection] = {}
        rows = np.arange(len(nodes))
        for rule in self.filters:
            rejections = _Rejections(rule.name)
            rejections.judge(rule.filter(self.pod, nodes), rows, len(nodes))
            for position in range(len(nodes)):
                if position not in found and rejections.refuses(position):
                    found[position] = rejections.as_node_rejection(position)
        return found

    def reason_counts(self) -> dict[str, int]:
        """How many nodes were refused for which reason, each by the first rule that refuses it."""
        count = self._state.count
        first = self._first[:count]
        counts: dict[str, int] = {}
        excluded = int(np.count_nonzero(first < 0))
        if excluded:
            row = int(np.argmax(first < 0))
            rejection = self.rejection_at(row)
            assert rejection is not None
            counts[rejection.reasons[0]] = excluded
        for number, rejections in enumerate(self._rejections):
            for reason, refused in rejections.count(first == number, count).items():
                counts[reason] = counts.get(reason, 0) + refused
        return counts

    def rejected_by(self) -> frozenset[str]:
        """The rules that some node was refused by, first of all rules."""
        numbers = np.unique(self._first[: self._state.count])
        names = {self.filters[number].name for number in numbers if 0 <= number < len(self.filters)}
        if len(numbers) and numbers[0] < 0:
            names.update(self._pre_filters[number].name for number in self._narrowed)
        return frozenset(names)

    @property
    def narrowed_to(self) -> frozenset[str] | None:
        """The names of the nodes that the pre-filters left; None when none of them narrowed."""
        if not self._narrowed_to:
            return None
        return frozenset.intersection(*self._narrowed_to.values())

    def object_changed(self, kind: type) -> None:
        for key, rule in self._rules():
            if kind in getattr(rule, "kinds", ()):
                self._judged_at.pop(key, None)

    @property
    def bytes_when_full(self) -> int:
        per_row = 8 * (len(self.filters) + 2 * len(self.scorers) + 1) + 3
        return per_row * max(self._capacity, self._state.count)

    # Filters.

    def _refresh_pre_filters(self, stale: "_Stale") -> Iterable[Rows]:
        touched: list[Rows] = []
        for number, rule in enumerate(self._pre_filters):
            rows = stale.rows(("preFilter", number), rule)
            if rows is None:
                continue
            answer = rule.pre_filter(self.pod, stale.nodes(rows))
            self._pod_rejections.pop(number, None)
            if isinstance(answer, PodRejection):
                self._pod_rejections[number] = answer
            elif answer is not None:
                if answer != self._narrowed_to.get(number):
                    self._narrowed_to[number] = answer
                    self._narrowed[number] = np.zeros(self._capacity, np.bool_)
                    rows = stale.everything
                found = stale.nodes(rows).names
                self._narrowed[number][rows] = [name in answer for name in found]
                touched.append(rows)
            elif self._narrowed_to.pop(number, None) is not None:
                del self._narrowed[number]
                touched.append(stale.everything)
        return touched

    def _judge_filter(self, number: int, rule: Any, rows: Rows, stale: "_Stale") -> Rows:
        nodes = stale.nodes(rows)
        self._rejections[number].judge(rule.filter(self.pod, nodes), rows, self._capacity)
        return rows

    def _settle(self, rows: Rows) -> None:
        """Works out for these rows which rule refuses first, and whether any does."""
        first = np.full(len(rows), len(self.filters), np.int16)
        for number in reversed(range(len(self.filters))):
            bits = self._rejections[number].bits
            if bits is not None:
                first[bits[rows] != 0] = number
        for kept in self._narrowed.values():
            first[~kept[rows]] = -1
        self._first[rows] = first
        self._feasible[rows] = first == len(self.filters)
        if self._refiltered is not None:
            self._refiltered = np.union1d(self._refiltered, rows)

    # Scores.

    @property
    def _has_scores(self) -> bool:
        return any(scores.has_opinion for scores in self._scores)

    def _refresh_scores(self) -> None:
        count = self._state.count
        if count < self._scored_count:
            # A row is gone, and with it perhaps the highest score.
            self._refiltered = None
        refiltered = self._refiltered
        stale = _Stale(self._state, self._judged_at)
        dirty: list[Rows] = [np.arange(count) if refiltered is None else refiltered]
        for number, scores in enumerate(self._scores):
            rows = stale.rows(("score", number), scores.rule)
            if rows is not None:
                nodes = stale.nodes(rows)
                scores.judge(self.pod, nodes, self._feasible[rows], rows, self._capacity)
            dirty.append(scores.rescale(self.feasible, rows, refiltered))
        stale.done()
        self._add_up(_union(dirty, count))
        self._scored_count = count
        self._refiltered = np.empty(0, np.intp)

    def _add_up(self, rows: Rows) -> None:
        if not len(rows):
            return
        total = np.zeros(len(rows), np.int64)
        for scores in self._scores:
            if scores.has_opinion:
                total += scores.weight * scores.normalized[rows]
        if not self._has_scores:
            total += 1  # kube-scheduler gives every node 1 when nothing scores
        self._ranked[rows] = np.where(self._feasible[rows], total, -1)

    # Room.

    def _rules(self) -> Iterable[tuple[_Asked, Any]]:
        for number, rule in enumerate(self._pre_filters):
            yield ("preFilter", number), rule
        for number, rule in enumerate(self.filters):
            yield ("filter", number), rule
        for number, weighted in enumerate(self.scorers):
            yield ("score", number), weighted.rule

    def _make_room(self) -> None:
        """When the table has outgrown the arrays, everything is judged anew in larger ones."""
        if self._state.count <= self._capacity and self._capacity:
            return
        self._capacity = max(64, 2 * self._state.count)
        self._judged_at.clear()
        self._pod_rejections.clear()
        self._narrowed_to.clear()
        self._narrowed.clear()
        self._first = np.zeros(self._capacity, np.int16)
        self._feasible = np.zeros(self._capacity, np.bool_)
        self._ranked = np.full(self._capacity, -1, np.int64)
        self._rejections = [_Rejections(rule.name) for rule in self.filters]
        self._scores = [_Scores(weighted.rule, weighted.weight) for weighted in self.scorers]
        self._scored_count = 0
        self._refiltered = None


class _Rejections:
    """One filter's refusals: a bit per reason, for every row. No array while it refuses nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bits: npt.NDArray[np.uint64] | None = None
        self._reasons: list[tuple[str, bool]] = []

    def judge(self, rejections: Iterable[Rejection], rows: Rows, capacity: int) -> None:
        found = np.zeros(len(rows), np.uint64)
        for rejection in rejections:
            _check_mask(self.name, rejection.mask, len(rows))
            found[rejection.mask] |= self._bit(rejection)
        if self.bits is None:
            if not found.any():
                return
            self.bits = np.zeros(capacity, np.uint64)
        self.bits[rows] = found

    def refuses(self, row: int) -> bool:
        return self.bits is not None and bool(self.bits[row])

    def reasons_at(self, row: int) -> list[tuple[str, bool]]:
        bits = 0 if self.bits is None else int(self.bits[row])
        return [each for number, each in enumerate(self._reasons) if bits >> number & 1]

    def as_node_rejection(self, row: int, also: tuple[NodeRejection, ...] = ()) -> NodeRejection:
        reasons = self.reasons_at(row)
        return NodeRejection(
            plugin=self.name,
            reasons=tuple(reason for reason, _ in reasons),
            eviction_helps=all(eviction_helps for _, eviction_helps in reasons),
            also=also,
        )

    def count(self, where: BoolArray, count: int) -> dict[str, int]:
        if self.bits is None or not where.any():
            return {}
        bits = self.bits[:count][where]
        counts: dict[str, int] = {}
        for number, (reason, _) in enumerate(self._reasons):
            refused = int(np.count_nonzero(bits & np.uint64(1 << number)))
            if refused:
                counts[reason] = counts.get(reason, 0) + refused
        return counts

    def _bit(self, rejection: Rejection) -> np.uint64:
        reason = (rejection.reason, rejection.eviction_helps)
        if reason not in self._reasons:
            if len(self._reasons) == _MOST_REASONS:
                raise PluginError(
                    f"{self.name} gives more than {_MOST_REASONS} different reasons for one pod; "
                    "leave node names out of reasons"
                )
            self._reasons.append(reason)
        return np.uint64(1 << self._reasons.index(reason))


class _Scores:
    """One rule's raw and normalised scores for every row."""

    def __init__(self, rule: Any, weight: int) -> None:
        self.rule = rule
        self.weight = weight
        self.has_opinion = False
        self.raw: IntArray = np.empty(0, np.int64)
        self.normalized: IntArray = np.empty(0, np.int64)
        self._scale = getattr(rule, "scale", None)
        self._normalize = getattr(rule, "normalize", None)
        self._highest = 0
        self._lost_highest = True

    def judge(self, pod: Pod, nodes: Nodes, feasible: BoolArray, rows: Rows, capacity: int) -> None:
        raw = self.rule.score(pod, nodes, feasible)
        self.has_opinion = raw is not None
        if raw is None:
            return
        if len(raw) != len(nodes):
            raise PluginError(f"{self.rule.name}: {len(raw)} scores for {len(nodes)} nodes")
        if raw.dtype != np.int64:
            raise PluginError(f"{self.rule.name} scores in {raw.dtype}; scores are int64")
        if not len(self.raw):
            self.raw = np.zeros(capacity, np.int64)
            self.normalized = np.zeros(capacity, np.int64)
        elif not self._lost_highest:
            self._lost_highest = bool((self.raw[rows] == self._highest).any())
        self.raw[rows] = raw

    def rescale(self, feasible: BoolArray, judged: Rows | None, refiltered: Rows | None) -> Rows:
        """Brings the normalised scores up to date; returns the rows that may have changed.

        `refiltered` are the rows whose feasibility may have changed; None means all.
        """
        nothing = np.empty(0, np.intp)
        if not self.has_opinion:
            return nothing
        count = len(feasible)
        untouched = judged is None and refiltered is not None and not len(refiltered)
        if untouched:
            return nothing
        everything = np.arange(count)
        if self._normalize is not None:
            self.normalized[:count] = self._checked(self.normalized_among(feasible), feasible)
            return everything
        touched = everything
        if refiltered is not None:
            touched = refiltered if judged is None else np.union1d(refiltered, judged)
        if self._scale is not None and self._has_new_highest(feasible, touched):
            touched = everything
        rows = touched[touched < count]
        values = scaled(self.raw[rows], self._highest, self._scale)
        self.normalized[rows] = self._checked(values, feasible[rows])
        return rows

    def normalized_among(self, feasible: BoolArray) -> IntArray:
        raw = self.raw[: len(feasible)]
        if self._normalize is not None:
            normalized: IntArray = self._normalize(raw, feasible)
            return normalized
        return scaled(raw, _highest_of(raw, feasible), self._scale)

    def _has_new_highest(self, feasible: BoolArray, touched: Rows) -> bool:
        before = self._highest
        raw = self.raw[: len(feasible)]
        if self._lost_highest or bool((raw[touched] == before).any()):
            self._highest = _highest_of(raw, feasible)
            # The first time there is nothing to compare with: everything is scaled.
            first_time, self._lost_highest = self._lost_highest, False
            return first_time or self._highest != before
        self._highest = max(before, _highest_of(raw[touched], feasible[touched]))
        return self._highest != before

    def _checked(self, normalized: IntArray, feasible: BoolArray) -> IntArray:
        wrong = feasible & ((normalized < 0) | (normalized > MAX_SCORE))
        if wrong.any():
            raise PluginError(
                f"plugin {self.rule.name!r} returns an invalid score {normalized[wrong][0]}, "
                f"it should in the range of [0, {MAX_SCORE}] after normalizing"
            )
        return normalized


class _Stale:
    """Which rows each rule has to judge again, worked out once per set of things read."""

    def __init__(self, state: ClusterState, judged_at: dict[_Asked, int]) -> None:
        self._state = state
        self._judged_at = judged_at
        self.everything: Rows = np.arange(state.count)
        self._rows: dict[tuple[int, int], Rows | None] = {}
        self._views: dict[int, Nodes] = {}
        self._asked: list[_Asked] = []

    def rows(self, key: _Asked, rule: Any) -> Rows | None:
        """None when the rule has nothing to judge again."""
        since = self._judged_at.get(key, _NEVER)
        self._asked.append(key)
        if since == _NEVER:
            return self.everything
        if since == self._state.position:
            return None
        reads = reads_of(rule)
        if (since, reads) not in self._rows:
            self._rows[since, reads] = self._work_out(since, reads)
        return self._rows[since, reads]

    def nodes(self, rows: Rows) -> Nodes:
        """One face per set of rows, shared by the rules."""
        if rows is self.everything:
            return self._state.nodes()
        view = self._views.get(id(rows))
        if view is None:
            view = self._views[id(rows)] = self._state.nodes().take(rows)
        return view

    def done(self) -> None:
        for key in self._asked:
            self._judged_at[key] = self._state.position

    def _work_out(self, since: int, reads: int) -> Rows | None:
        changes = self._state.changes_since(since)
        if changes is None or len(changes) > 4 * self._state.count + 64:
            return self.everything
        anything = 0
        for row, what in changes:
            anything |= what
            if row == EVERY_ROW and what & reads:
                return self.everything
        if reads & NODES and anything & NODE:
            return self.everything
        if reads & OTHERS and anything & (PODS | NODE):
            return self.everything
        count = self._state.count
        # A row that came or moved is new to every rule, whatever it reads.
        rows = {row for row, what in changes if (what & reads or what == ROW) and row < count}
        rows.discard(EVERY_ROW)
        if not rows:
            return None
        if len(rows) > count // 2:
            return self.everything
        return np.array(sorted(rows), np.intp)


def _union(parts: list[Rows], count: int) -> Rows:
    if not parts:
        return np.empty(0, np.intp)
    largest = max(parts, key=len)
    if len(largest) >= count or len(parts) == 1:
        return largest
    first = parts[0]
    if all(part is first for part in parts):
        return first
    return np.unique(np.concatenate(parts))


def _highest_of(raw: IntArray, feasible: BoolArray) -> int:
    return int(np.max(raw, where=feasible, initial=0))


def _check_mask(name: str, mask: Any, count: int) -> None:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or len(mask) != count:
        raise PluginError(f"{name} answers with {mask!r}; it must be {count} booleans, one a node")
