"""What can change on a row of the table, and what a rule can read of it.

Plain ints that are or-ed together: enum.Flag costs too much where every decision tests them.
"""

from lowtide.objects.node import Node

NODE = 1  # this node's own object: labels, taints, allocatable
TAKEN = 2  # what the pods on this node take: resources, ports, volumes
READING = 4  # what is measured on this node
NODES = 8  # any node's object
OTHERS = 16  # the pods of other nodes
FEASIBLE = 64  # which nodes the filters left; only for scores
TERMS = 128  # the affinity terms that pods of any node carry
LABELS = 256  # the labels of the pods on this node

PODS = TAKEN | LABELS  # the pods on this node, in anything

ROW = NODE | PODS | READING

EVERY_ROW = -1  # in the log of changes, instead of a row
OBJECTS = 32  # an object of a kind the rule depends on; only for what makes a pod worth a retry


def is_same_to_rules(before: Node, after: Node) -> bool:
    """Heartbeats change only conditions and times, which no rule reads."""
    return (
        before.spec == after.spec
        and before.status == after.status
        and before.labels == after.labels
        and before.metadata.annotations == after.metadata.annotations
    )
