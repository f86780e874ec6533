"""What the links of a drawn world truly carry: a rate per node and direction, and its integral.

The run changes rates; the model of Prometheus reads counters. A link that is asked for more than
it can carry is counted as asked, so that a placement's overload shows in full."""

import numpy as np

from lowtide.cluster.columns import FloatArray

RECEIVE = 0
TRANSMIT = 1

# What counters held when the world began: nodes have been up for long, and their exporters count
# since then.
UPTIME_SECONDS = 30 * 86_400.0


class World:
    """Rates stay as they are between two changes, so counters are exact sums."""

    def __init__(
        self, capacity: FloatArray, background_shares: FloatArray, *, began_at: float
    ) -> None:
        self.capacity = capacity
        self.now = began_at
        self._background = background_shares * capacity
        self._of_pods = np.zeros((2, len(capacity)))  # (directions, nodes)
        self.rates = self._of_pods + self._background
        self._counters = self.rates * UPTIME_SECONDS

    @property
    def utilization(self) -> FloatArray:
        """Of each node's link, in its worse direction."""
        share: FloatArray = self.rates.max(axis=0) / self.capacity
        return share

    @property
    def bytes_per_second(self) -> float:
        """All that is carried, in the worse direction of each link."""
        return float(self.rates.max(axis=0).sum())

    def counters_at(self, moments: FloatArray) -> FloatArray:
        """(directions, nodes) at a moment for each node, none earlier than the last change."""
        counted: FloatArray = self._counters + self.rates * (moments - self.now)
        return counted

    def advance(self, now: float) -> None:
        self._counters += self.rates * (now - self.now)
        self.now = now

    # Changes, from `now` on.

    def set_background(self, shares: FloatArray) -> None:
        self._background = shares * self.capacity
        self.rates = self._of_pods + self._background

    def add_pod(self, node: int, receive: float, transmit: float) -> None:
        self._of_pods[:, node] += (receive, transmit)
        self._sum_up(node)

    def remove_pod(self, node: int, receive: float, transmit: float) -> None:
        left = self._of_pods[:, node] - (receive, transmit)
        self._of_pods[:, node] = np.maximum(left, 0.0)  # what is left of the last may be -1e-8
        self._sum_up(node)

    def _sum_up(self, node: int) -> None:
        self.rates[:, node] = self._of_pods[:, node] + self._background[node]
