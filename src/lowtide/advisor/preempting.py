"""Finds where a pod would fit without the victims that another scheduler would evict. Used by the
advisor."""

import numpy as np

from lowtide.advisor.advice import AskedPreemption
from lowtide.framework.asking import UNTIMED
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.framework.what_if import PostFilterContext


def fitting_without_victims(
    asked: AskedPreemption, verdicts: VerdictCache, turn: int, waited_seconds: float
) -> frozenset[str]:
    state = verdicts.state
    verdict = verdicts.verdict_on(asked.pod)
    rejected = verdict.pod_rejection
    if rejected is not None and not rejected[1].eviction_helps:
        return frozenset()
    rows = {name: state.row_of(name) for name in asked.victims}
    names = [name for name, row in rows.items() if row is not None and not verdict.is_excluded(row)]
    if not names:
        return frozenset()
    context = PostFilterContext(
        asked.pod,
        verdict,
        profile=verdicts.profile,
        asking=UNTIMED,
        also_rejected={},
        turn=turn,
        waited_seconds=waited_seconds,
    )
    nodes = state.nodes().take(np.array([rows[name] for name in names], np.intp))
    without = nodes.without({at: asked.victims[name] for at, name in enumerate(names)})
    rejections = context.on(without)
    return frozenset(name for at, name in enumerate(names) if at not in rejections)
