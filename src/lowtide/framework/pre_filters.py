"""PreFilters: the answers of the pre-filters for one pod signature. A pre-filter may reject the pod
on every node, or narrow the search to some nodes.

Filtering has one, and counts the nodes that were left out as rejected."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowtide.cluster.changes import FIRST_KIND, logged_bits
from lowtide.cluster.columns import BoolArray, Rows
from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import NodeRejection
from lowtide.framework.evaluation import ChangedRows, check_kinds
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.objects.pod import Pod


class PreFilters:
    """Pre-filters have numbers, in the profile's order. Their answer is about the pod, so they see
    the whole table, as `nodes.everything`."""

    def __init__(self, plugins: Sequence[Any], state: ClusterState, pod: Pod) -> None:
        self.plugins = tuple(plugins)
        self._state = state
        self._pod = pod
        self.start_again(0)

    def start_again(self, capacity: int) -> None:
        """Forget all answers, and make arrays of this length for new ones."""
        self._capacity = capacity
        self.touched = [0] * len(self.plugins)
        self.logged = 0  # the logged bits that may change an answer
        self._pod_rejections: dict[int, PodRejection] = {}
        self._names: dict[int, frozenset[str]] = {}  # the nodes to which each narrowed the search
        self.kept: dict[int, BoolArray] = {}  # the same by row
        # The plugin that rejects the pod on every node, and why.
        self.pod_rejection: tuple[str, PodRejection] | None = None
        # The nodes that all of them leave; None if none narrowed the search.
        self.narrowed_to: frozenset[str] | None = None

    def refresh(self, changes: ChangedRows) -> bool:
        """Ask the plugins again for which a touched bit changed. Return whether the nodes to search
        may differ now. Call it only if `changes` concern `logged`."""
        is_other = False
        nodes = self._state.nodes().everything
        for number, plugin in enumerate(self.plugins):
            if changes.rows(self.touched[number]) is not None:
                answer, self.touched[number] = changes.asking.observed(
                    self._state, plugin, "pre_filter", self._pod, nodes
                )
                if self.touched[number] & -FIRST_KIND:
                    check_kinds(self._state, plugin, self.touched[number])
                is_other |= self._take(number, answer)
        self.logged = 0
        for touched in self.touched:
            self.logged |= logged_bits(touched)
        self.pod_rejection = self._pod_rejection()
        self.narrowed_to = frozenset.intersection(*self._names.values()) if self._names else None
        return is_other

    def _take(self, number: int, answer: Any) -> bool:
        """Keep this pre-filter's answer. Return whether the nodes to search may differ now."""
        self._pod_rejections.pop(number, None)
        was_narrowed = self._names.pop(number, None) is not None
        self.kept.pop(number, None)
        if isinstance(answer, PodRejection):
            self._pod_rejections[number] = answer
        elif answer is not None:
            _check_names(self.plugins[number].name, answer)
            self._names[number] = answer
            kept = self.kept[number] = np.zeros(self._capacity, np.bool_)
            rows = (self._state.row_of(name) for name in answer)
            kept[[row for row in rows if row is not None]] = True
        return was_narrowed or number in self.kept

    def _pod_rejection(self) -> tuple[str, PodRejection] | None:
        """As kube-scheduler reports: the first rejection that eviction cannot help, or else the
        last one."""
        found = None
        for number, rejection in sorted(self._pod_rejections.items()):
            found = (self.plugins[number].name, rejection)
            if not rejection.eviction_helps:
                break
        return found

    @property
    def narrowed_by(self) -> list[str]:
        """The plugins that narrowed the search."""
        return [self.plugins[number].name for number in sorted(self.kept)]

    def leaves_out(self, rows: Rows) -> BoolArray:
        excluded = np.zeros(len(rows), np.bool_)
        for kept in self.kept.values():
            excluded |= ~kept[rows]
        return excluded

    def exclusion_at(self, row: int) -> NodeRejection:
        return NodeRejection(
            plugin="",
            reasons=(f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowed_by)}]",),
            eviction_helps=False,
            excluded_by=tuple(
                self.plugins[number].name
                for number, kept in sorted(self.kept.items())
                if not kept[row]
            ),
        )


def _check_names(name: str, answer: Any) -> None:
    if not isinstance(answer, frozenset):
        raise PluginError(
            f"{name}.pre_filter returned {answer!r}; "
            "it must be a PodRejection, a frozenset of node names or None",
            plugin_name=name,
        )
