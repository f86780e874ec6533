"""Rows judged ahead by every default plugin: pods of one signature come one after the other, and
what is kept equals what is judged from nothing. Uses the plugins and clusters of
test_incremental."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.test_incremental import (
    SCORINGS,
    SIGNATURES,
    Incremental,
    nodes,
    renamed,
    running,
    verdict_on,
)

from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod

SETTINGS = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("scoring", SCORINGS)
@SETTINGS
@given(
    some_nodes=st.lists(nodes, max_size=4),
    pods=st.lists(running, max_size=6),
    turn=st.integers(0, 20),
    is_measured=st.booleans(),
)
def test_pods_of_one_signature_in_a_row(
    scoring: type[Incremental],
    some_nodes: list[Node],
    pods: list[Pod],
    turn: int,
    is_measured: bool,
) -> None:
    cluster = scoring()
    cluster.start()
    cluster.many_nodes_come(12)
    for node in some_nodes:
        cluster.node_comes_or_changes(node)
    for pod in pods:
        cluster.pod_is_bound_or_changes(pod)
    if is_measured:
        names = cluster.state.names
        cluster.reading_is_published({name: float(at % 3) for at, name in enumerate(names)}, 15.0)
    for signature in SIGNATURES:
        for number in range(4):
            cluster.pod_is_placed_by_decision(renamed(signature, f"{number}"), turn)
            fresh, again = (
                VerdictCache(cluster.profile, cluster.from_nothing()),
                renamed(signature, "again"),
            )
            assert verdict_on(cluster.verdicts, again) == verdict_on(fresh, again)
