"""`filter_each` and `score_each`: plugins that judge one node at a time, in plain Python. A plugin
author imports them from `framework/plugin.py`."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, overload

import numpy as np

from lowtide.cluster.columns import IntArray
from lowtide.cluster.nodes import Nodes
from lowtide.cluster.one_node import OneNode
from lowtide.framework.answers import PluginError, Rejection
from lowtide.objects.pod import Pod

FilterOne = Callable[[Any, Pod, OneNode], str | None]
FilterAll = Callable[[Any, Pod, Nodes], Iterable[Rejection]]
ScoreOne = Callable[[Any, Pod, OneNode], int]
ScoreAll = Callable[[Any, Pod, Nodes], IntArray]


@overload
def filter_each(judge: FilterOne) -> FilterAll: ...
@overload
def filter_each(*, eviction_helps: bool) -> Callable[[FilterOne], FilterAll]: ...
def filter_each(judge: Any = None, *, eviction_helps: bool = False) -> Any:
    """Lifts a filter that judges one node: it returns why it refuses the node, or None."""

    def lift(judge: FilterOne) -> FilterAll:
        @wraps(judge)
        def filter_all(self: Any, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
            positions_by_reason: dict[str, list[int]] = {}
            for position in range(len(nodes)):
                reason = judge(self, pod, nodes.one(position))
                if reason is not None:
                    positions_by_reason.setdefault(reason, []).append(position)
            for reason, positions in positions_by_reason.items():
                mask = np.zeros(len(nodes), np.bool_)
                mask[positions] = True
                yield Rejection(mask, reason, eviction_helps)

        return filter_all

    return lift if judge is None else lift(judge)


def score_each(judge: ScoreOne) -> ScoreAll:
    """Lifts a score that judges one node."""

    @wraps(judge)
    def score_all(self: Any, pod: Pod, nodes: Nodes) -> IntArray:
        scores = [judge(self, pod, nodes.one(position)) for position in range(len(nodes))]
        for position, value in enumerate(scores):
            if not isinstance(value, int) or value.bit_length() > 63:
                raise PluginError(
                    f"{self.name} scored node {nodes.names[position]} {value!r}; "
                    "a score is a whole number of at most 63 bits"
                )
        return np.array(scores, np.int64)

    return score_all
