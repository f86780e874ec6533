"""What can change on a row of the table, and what a plugin can depend on: the same bits.

ClusterState logs which bits changed on which row. Nodes records which bits a plugin touched while
it answered. Plain ints that are or-ed together: enum.Flag costs too much where every decision
tests them.
"""

from lowtide.objects.node import Node

# On one row.
NODE = 1  # the node's own object: labels, taints, allocatable
TAKEN = 2  # what the pods on it take: resources, ports, volumes
LABELS = 4  # the labels of the pods on it
READING = 8  # what is measured on it
FEASIBLE = 16  # whether it passed the filters; only score plugins touch it
TERMS = 32  # the affinity terms of the pods on it
# 64 and 128 are only in a Change, which wakes pods: framework/change.py has them.

PODS = TAKEN | LABELS  # anything about the pods on it
ROW = NODE | PODS | READING | TERMS  # logged if a row is added, removed or moved

# The same bits for any row of the whole table: reads of `nodes.everything` touch these.
ANY_ROW = 8  # bits to shift by
NODES = NODE << ANY_ROW
OTHERS = PODS << ANY_ROW

ANY_BITS = (1 << ANY_ROW) - 1  # all bits of one row

FEASIBLE_ANYWHERE = FEASIBLE | FEASIBLE << ANY_ROW

# From here on, one bit for each kind of other objects.
FIRST_KIND = 1 << 16

EVERY_ROW = -1  # in the change log, in place of a row


def of_any_row(touched: int) -> int:
    """The bits touched on any row, shifted to the bits that are logged for one row."""
    return touched >> ANY_ROW & ANY_BITS


def logged_bits(touched: int) -> int:
    """The logged bits, on whatever row, that may change an answer that touched this."""
    return touched | of_any_row(touched)


def is_local(touched: int) -> bool:
    """Whether an answer about a row depends on what its pods take or on its reading, but not on
    other rows. An answer that reads pod labels is not local: the API server labels a pod when it
    binds it, which would invalidate every lookahead."""
    return bool(touched & (TAKEN | READING)) and not touched & (
        LABELS | FEASIBLE | ANY_BITS << ANY_ROW
    )


def depends_on_pods(touched: int) -> bool:
    """Whether adding or removing pods may change an answer that touched this. Readings count: an
    added pod is expected to add traffic."""
    return bool(logged_bits(touched) & (PODS | READING | TERMS))


def is_same_to_plugins(before: Node, after: Node) -> bool:
    """Whether plugins see no difference. Heartbeats change only conditions and times, which no
    plugin reads."""
    return (
        before.spec == after.spec
        and before.status == after.status
        and before.labels == after.labels
        and before.metadata.annotations == after.metadata.annotations
    )
