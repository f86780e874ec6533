"""The best placement found offline with every demand known: what a run's peak is divided by.

Longest first onto the least resulting utilisation, then moves and swaps off the busiest link until
none helps. It respects nothing but traffic."""

import numpy as np

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.simulator.draw import BACKGROUND_STEP_SECONDS, Draw

# A change counts as better only beyond what rounding does.
_ROUNDING = 1e-12


def reference_peak(draw: Draw, until: float) -> float:
    """For the pods alive when all traffic together is highest. No placement can be better than the
    highest background at any time, or than any pod alone on the node that takes it best."""
    moments = _moments(draw, until)
    steps, step_of = np.unique(moments // BACKGROUND_STEP_SECONDS, return_inverse=True)
    background = np.array(
        [draw.background.shares(step * BACKGROUND_STEP_SECONDS) for step in steps]
    )  # (steps, nodes)
    of_background = (background * draw.capacity).sum(axis=1)[step_of]
    busiest = int(np.argmax(of_background + _of_pods(draw, moments)))
    alive = _is_alive(draw, float(moments[busiest]))
    placement = Placement(
        demand=np.array([draw.pods.receive[alive], draw.pods.transmit[alive]]),
        capacity=draw.capacity,
        background=background[step_of[busiest]],
    )
    placement.place_longest_first()
    placement.improve()
    step_of_pod = step_of[np.searchsorted(moments, draw.pods.arrives_at)]
    alone = _highest_alone(draw, background, step_of_pod)
    return max(placement.peak, float(background.max()), alone)


class Placement:
    """Pods on nodes. `demand` is (directions, pods) in bytes per second, `background` a share of
    each node's capacity in both directions."""

    def __init__(self, demand: FloatArray, capacity: FloatArray, background: FloatArray) -> None:
        self.node_of: IntArray = np.full(demand.shape[1], -1, np.int64)
        self._demand = demand
        self._capacity = capacity
        self._load = np.tile(background * capacity, (2, 1))  # (directions, nodes)

    @property
    def peak(self) -> float:
        return float(self._utilization().max())

    def place_longest_first(self) -> None:
        for pod in np.argsort(-self._demand.max(axis=0), kind="stable").tolist():
            resulting = (self._load + self._demand[:, pod, None]).max(axis=0) / self._capacity
            self._put(pod, int(np.argmin(resulting)))

    def improve(self) -> None:
        """Each step lowers the busiest link without raising another to where it was."""
        while self._move_one() or self._swap_two():
            pass

    def _move_one(self) -> bool:
        """One pod off the busiest node, to wherever the worse of both is best."""
        busiest, highest, pods = self._busiest()
        if not len(pods):
            return False
        demand = self._demand[:, pods]  # (directions, pods)
        there = (self._load[:, None, :] + demand[:, :, None]).max(axis=0) / self._capacity
        there[:, busiest] = np.inf  # (pods, nodes)
        here = (self._load[:, busiest, None] - demand).max(axis=0) / self._capacity[busiest]
        worse = np.maximum(there, here[:, None])
        pod, node = np.unravel_index(np.argmin(worse), worse.shape)
        if worse[pod, node] >= highest - _ROUNDING:
            return False
        self._put(int(pods[pod]), int(node))
        return True

    def _swap_two(self) -> bool:
        """One pod of the busiest node against a smaller one from elsewhere."""
        busiest, highest, pods = self._busiest()
        others = np.flatnonzero(self.node_of != busiest)
        if not len(pods) or not len(others):
            return False
        node = self.node_of[others]
        change = self._demand[:, pods, None] - self._demand[:, None, others]
        there = (self._load[:, None, node] + change).max(axis=0) / self._capacity[node]
        here = (self._load[:, busiest, None, None] - change).max(axis=0) / self._capacity[busiest]
        worse = np.maximum(there, here)  # (pods, others)
        pod, other = np.unravel_index(np.argmin(worse), worse.shape)
        if worse[pod, other] >= highest - _ROUNDING:
            return False
        self._put(int(pods[pod]), int(node[other]))
        self._put(int(others[other]), busiest)
        return True

    def _busiest(self) -> tuple[int, float, IntArray]:
        """The busiest node, how busy it is, and the pods on it."""
        utilization = self._utilization()
        busiest = int(np.argmax(utilization))
        return busiest, float(utilization[busiest]), np.flatnonzero(self.node_of == busiest)

    def _put(self, pod: int, node: int) -> None:
        if self.node_of[pod] >= 0:
            self._load[:, self.node_of[pod]] -= self._demand[:, pod]
        self.node_of[pod] = node
        self._load[:, node] += self._demand[:, pod]

    def _utilization(self) -> FloatArray:
        share: FloatArray = self._load.max(axis=0) / self._capacity
        return share


def _moments(draw: Draw, until: float) -> FloatArray:
    """When the most may be carried: at arrivals, and when the background changes."""
    steps = np.arange(0.0, until, BACKGROUND_STEP_SECONDS) if draw.background.changes else [0.0]
    return np.unique(np.concatenate([draw.pods.arrives_at, steps]))


def _of_pods(draw: Draw, moments: FloatArray) -> FloatArray:
    """What the pods alive at each moment carry together."""
    demand = np.maximum(draw.pods.receive, draw.pods.transmit)
    leaves_at = draw.pods.arrives_at + draw.pods.lives_for
    by_leaving = np.argsort(leaves_at, kind="stable")
    came = np.concatenate([[0.0], np.cumsum(demand)])
    left = np.concatenate([[0.0], np.cumsum(demand[by_leaving])])
    arrived = np.searchsorted(draw.pods.arrives_at, moments, side="right")
    gone = np.searchsorted(leaves_at[by_leaving], moments, side="right")
    carried: FloatArray = came[arrived] - left[gone]
    return carried


def _highest_alone(draw: Draw, background: FloatArray, step_of_pod: IntArray) -> float:
    """What the most demanding pod makes of the best node for it, as that is when it arrives."""
    demand = np.maximum(draw.pods.receive, draw.pods.transmit)
    highest = 0.0
    for step in np.unique(step_of_pod):
        largest = demand[step_of_pod == step].max()  # the others of this minute matter less
        highest = max(highest, float((largest / draw.capacity + background[step]).min()))
    return highest


def _is_alive(draw: Draw, moment: float) -> IntArray:
    pods = draw.pods
    is_alive = (pods.arrives_at <= moment) & (pods.arrives_at + pods.lives_for > moment)
    return np.flatnonzero(is_alive)
