"""Replaces the known nodes by those in a request, for one answer. Used by the advisor."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from lowtide.cluster.state import ClusterState
from lowtide.objects.extender import NodeSeen
from lowtide.objects.node import Node


@contextmanager
def as_requested(state: ClusterState, nodes: Sequence[NodeSeen]) -> Iterator[None]:
    """Put these nodes into the state as the request has them, and restore them afterwards."""
    before: list[Node] = []
    added: list[str] = []
    try:
        for seen in nodes:
            row = state.row_of(seen.name)
            if row is None:
                state.add_node(_as_node(seen, Node()))
                added.append(seen.name)
                continue
            known = state.node_at(row)
            if not _says_the_same(seen, known):
                before.append(known)
                state.update_node(_as_node(seen, known))
        yield
    finally:
        for node in before:
            state.update_node(node)
        for name in reversed(added):
            _remove(state, name)


def _remove(state: ClusterState, name: str) -> None:
    """Remove the node; pods stay nominated to it, because the watch may still add it."""
    nominated = list(state.nominated().get(name, {}).values())
    state.remove_node(name)
    for pod in nominated:
        state.nominate(pod, name)


def _as_node(seen: NodeSeen, known: Node) -> Node:
    """The node of the request, with the known images: requests are not read for images."""
    status = replace(
        known.status,
        allocatable=seen.status.allocatable,
        addresses=seen.status.addresses,
        declared_features=seen.status.declared_features,
    )
    return Node(metadata=seen.metadata, spec=seen.spec, status=status)


def _says_the_same(seen: NodeSeen, known: Node) -> bool:
    return (
        seen.metadata.labels == known.metadata.labels
        and seen.status.allocatable == known.status.allocatable
        and seen.spec == known.spec
        and seen.metadata.annotations == known.metadata.annotations
        and seen.status.declared_features == known.status.declared_features
    )
