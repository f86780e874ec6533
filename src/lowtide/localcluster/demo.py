"""The demo's cluster as data: 12 nodes in 3 racks, links of 1, 10 and 25 Gb/s, shifting traffic.

Read by the demo and by tests that want a varied cluster."""

import random

from lowtide.localcluster.nodes import GIGABIT_BYTES_PER_SECOND, LocalNode
from lowtide.localcluster.traffic import Background, Link

SECONDS_PER_TURN = 10.0
_RACKS = ("rack-a", "rack-b", "rack-c")
_NODES_PER_RACK = 4
# Node in its rack -> speed in Gb/s, and the shares of it that are used when quiet and when busy.
_SPEEDS = ((1, 0.10, 0.90), (10, 0.03, 0.85), (10, 0.04, 0.80), (25, 0.02, 0.70))


def demo_nodes(seed: int = 0) -> list[LocalNode]:
    """Each node is the busy one for about ten seconds; `seed` picks the order of the turns."""
    turns = list(range(len(_RACKS) * _NODES_PER_RACK))
    random.Random(seed).shuffle(turns)
    return [
        _node(rack_index, place, turns[rack_index * _NODES_PER_RACK + place], len(turns))
        for rack_index in range(len(_RACKS))
        for place in range(_NODES_PER_RACK)
    ]


def _node(rack_index: int, place: int, turn: int, turns: int) -> LocalNode:
    gigabits, quiet_share, busy_share = _SPEEDS[place]
    rack = _RACKS[rack_index]
    return LocalNode(
        name=f"{rack}-{place + 1}",
        cpu="8",
        memory="32Gi",
        labels={"topology.kubernetes.io/zone": f"zone-{rack[-1]}", "rack": rack},
        links=(Link("eth0", gigabits * GIGABIT_BYTES_PER_SECOND),),
        background=Background(
            quiet_share=quiet_share,
            busy_share=busy_share,
            period_seconds=SECONDS_PER_TURN * turns,
            phase=turn / turns,
            transmit_per_receive=0.6 + 0.1 * (turn % 4),
        ),
    )
