"""What the pre-filters say of one shape of pod: refused everywhere, or only some nodes searched.

A Verdict keeps one of these, and asks the filters about what it leaves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowtide.cluster.columns import BoolArray, Rows
from lowtide.framework.decision import NodeRejection
from lowtide.framework.plugin import PluginError, PodRejection


class Narrowing:
    """Pre-filters are known by their numbers: their order is that of the profile."""

    def __init__(self, rules: Sequence[Any]) -> None:
        self._rules = rules
        self._pod_rejections: dict[int, PodRejection] = {}
        self._kept_names: dict[int, frozenset[str]] = {}
        self._kept: dict[int, BoolArray] = {}

    def take(
        self, number: int, answer: Any, row_of: Callable[[str], int | None], capacity: int
    ) -> bool:
        """What a pre-filter answers instead of what it said before; whether that may concern
        every row."""
        self._pod_rejections.pop(number, None)
        was_narrowed = self._kept_names.pop(number, None) is not None
        self._kept.pop(number, None)
        if isinstance(answer, PodRejection):
            self._pod_rejections[number] = answer
        elif answer is not None:
            _check_names(self._rules[number].name, answer)
            self._kept_names[number] = answer
            kept = self._kept[number] = np.zeros(capacity, np.bool_)
            kept[[row for name in answer if (row := row_of(name)) is not None]] = True
        return was_narrowed or number in self._kept

    @property
    def pod_rejection(self) -> tuple[str, PodRejection] | None:
        """The rule that refuses the pod everywhere, and why.

        The first for which evicting would not help; else the last of the others, as kube reports.
        """
        found = None
        for number, rejection in sorted(self._pod_rejections.items()):
            found = (self._rules[number].name, rejection)
            if not rejection.eviction_helps:
                break
        return found

    @property
    def names(self) -> frozenset[str] | None:
        """Of the nodes that are left; None where nothing narrowed them."""
        if not self._kept_names:
            return None
        return frozenset.intersection(*self._kept_names.values())

    @property
    def by(self) -> list[str]:
        """The rules that narrowed the search."""
        return [self._rules[number].name for number in sorted(self._kept)]

    @property
    def is_any(self) -> bool:
        return bool(self._kept)

    def excludes(self, rows: Rows) -> BoolArray:
        excluded = np.zeros(len(rows), np.bool_)
        for kept in self._kept.values():
            excluded |= ~kept[rows]
        return excluded

    def exclusion_at(self, row: int) -> NodeRejection:
        return NodeRejection(
            plugin="",
            reasons=(f"node(s) didn't satisfy plugin(s) [{' '.join(self.by)}]",),
            eviction_helps=False,
            excluded_by=tuple(
                self._rules[number].name
                for number, kept in sorted(self._kept.items())
                if not kept[row]
            ),
        )


def _check_names(name: str, answer: Any) -> None:
    if not isinstance(answer, frozenset):
        raise PluginError(
            f"{name}.pre_filter answers with {answer!r}; "
            "it must be a PodRejection, a frozenset of node names or None",
            rule_name=name,
        )
