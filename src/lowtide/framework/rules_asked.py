"""The rules of one extension point that are asked about one shape of pod, and which of them have
to judge which rows again. Used by what a Verdict consists of: filtering and scoring."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lowtide.cluster.changes import FEASIBLE, LABELS, NODES, OTHERS, READING, TAKEN, TERMS
from lowtide.cluster.columns import Rows
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.state import ClusterState
from lowtide.framework.plugin import reads_about, reads_of
from lowtide.framework.stale import Stale, touching
from lowtide.objects.pod import Pod

_NOT_LOCAL = LABELS | NODES | OTHERS | TERMS | FEASIBLE


class ToldApart(NamedTuple):
    """Rules by their numbers. What the `local` ones say of a row changes with what that row's pods
    take and with what is measured on it, and with nothing elsewhere; they are asked about few rows
    together."""

    reads: Sequence[int]  # by number
    local: Sequence[int]
    local_reads: int
    others: dict[int, list[int]]  # by what they read
    others_touched_by: int


class RulesAt:
    """The rules of one extension point of a profile. Most read the same about every pod, and those
    that do not read one of few things: they are told apart once for each."""

    def __init__(self, rules: Sequence[Any], point: str) -> None:
        self.rules = tuple(rules)
        self._point = point
        self._reads = [reads_of(rule) for rule in self.rules]
        self.most_local = sum(map(_is_local, self._reads))  # of some pods fewer
        self._depending = [n for n, rule in enumerate(rules) if hasattr(rule, "reads_about")]
        self._told_apart: dict[tuple[int, ...], ToldApart] = {}

    def told_apart(self, pod: Pod, nodes: Nodes) -> ToldApart:
        """By what each reads about the pod, which may change with objects of its kinds."""
        reads = self._reads.copy()
        for number in self._depending:
            reads[number] = reads_about(self.rules[number], pod, nodes, self._point)
        key = tuple(reads)
        found = self._told_apart.get(key)
        if found is None:
            found = self._told_apart[key] = _tell_apart(key)
        return found


class RulesAsked:
    """Those of one extension point about one shape, by their numbers."""

    def __init__(self, rules_at: RulesAt, pod: Pod) -> None:
        self.rules = rules_at.rules
        self._rules_at = rules_at
        self._pod = pod
        self.are_told_apart = False
        self.anew: set[int] = set()  # who has to judge every row

    def tell_apart(self, state: ClusterState) -> None:
        self.are_told_apart = True
        told_apart = self._rules_at.told_apart(self._pod, state.nodes())
        self.reads, self.local, self.local_reads, self._others, self.others_touched_by = told_apart

    def all_anew(self) -> None:
        self.anew = set(range(len(self.rules)))
        self.are_told_apart = False

    def object_changed(self, kind: type) -> bool:
        """Whether that concerns any of them."""
        concerned = [n for n, rule in enumerate(self.rules) if kind in getattr(rule, "kinds", ())]
        self.anew.update(concerned)
        self.are_told_apart &= not concerned
        return bool(concerned)

    @property
    def touched_by(self) -> int:
        """The changes that any of them hears of."""
        return self.others_touched_by | self.local_reads

    def are_others_concerned(self, stale: Stale) -> bool:
        return bool(self.anew) or stale.concerns(self.others_touched_by)

    def others(self, stale: Stale) -> Iterator[tuple[int, Rows]]:
        """Those that are not local, and what they have to judge again."""
        if not self.are_others_concerned(stale):
            return
        for reads, numbers in self._others.items():
            rows = stale.rows(reads)
            if rows is not None or self.anew:
                yield from self._with_rows(numbers, rows, stale)

    def local_rows(self, stale: Stale) -> Rows | None:
        """What any of the local ones has to judge again."""
        if self.anew and not self.anew.isdisjoint(self.local):
            return stale.everything
        return stale.rows(self.local_reads) if self.local else None

    def local_ones(self, stale: Stale) -> Iterator[tuple[int, Rows]]:
        """The same for each of them."""
        for number in self.local:
            yield from self._with_rows([number], stale.rows(self.reads[number]), stale)

    def _with_rows(
        self, numbers: Sequence[int], rows: Rows | None, stale: Stale
    ) -> Iterator[tuple[int, Rows]]:
        for number in numbers:
            if number in self.anew:
                yield number, stale.everything
            elif rows is not None:
                yield number, rows


def _is_local(reads: int) -> bool:
    """Labels change once more, when a pod is bound, and would undo what was judged ahead."""
    return bool(reads & (TAKEN | READING)) and not reads & _NOT_LOCAL


def _tell_apart(reads: Sequence[int]) -> ToldApart:
    local = [number for number, each in enumerate(reads) if _is_local(each)]
    local_reads = others_touched_by = 0
    others: dict[int, list[int]] = {}
    for number, each in enumerate(reads):
        if number in local:
            local_reads |= each
        else:
            others.setdefault(each, []).append(number)
            others_touched_by |= touching(each)
    return ToldApart(reads, local, local_reads, others, others_touched_by)
