"""One draw of a simulation: links, background, owners, pods and times, all from one seed.

The runs of every configuration share it; each part has its own stream of chance, so that a file
that differs in one part draws the others alike."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.scenario.simulation import NodeGroup, OwnerGroup, Simulation

BACKGROUND_STEP_SECONDS = 60.0

_NOISE = 1  # beside the seed, so that no other stream draws the same
_FIRST_STEP = 10**6  # steps may lie before the beginning, and a seed may not


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """The share of its link that each node's background takes, as it goes on; one per node."""

    seed: int
    level: FloatArray
    swing: FloatArray
    period_seconds: FloatArray
    phase: FloatArray
    noise: FloatArray

    @property
    def changes(self) -> bool:
        return bool(np.any(self.swing > 0) or np.any(self.noise > 0))

    def shares(self, at: float) -> FloatArray:
        """It stays as it is from one whole minute to the next."""
        if not self.changes:
            return self.level
        step = math.floor(at / BACKGROUND_STEP_SECONDS)
        turns = step * BACKGROUND_STEP_SECONDS / self.period_seconds + self.phase
        chance = np.random.default_rng([self.seed, _NOISE, _FIRST_STEP + step])
        factor = np.exp(self.noise * chance.standard_normal(len(self.level)))
        swung = self.level * (1 + self.swing * np.sin(2 * np.pi * turns)) * factor
        return np.clip(swung, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPods:
    """In the order of arrival; one per pod, rates in bytes per second, times in seconds."""

    owner: IntArray
    receive: FloatArray
    transmit: FloatArray
    arrives_at: FloatArray
    lives_for: FloatArray  # inf for ever

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Owner groups are told by number, one per owner; phases are shares of the interval they
    belong to."""

    seed: int
    capacity: FloatArray  # bytes per second in each direction
    background: Background
    owner_group: IntArray
    pods: DrawnPods
    earlier: DrawnPods  # what ran before the simulation begins
    exporter_phase: FloatArray
    kubelet_phase: FloatArray
    poll_phase: float


def draw(simulation: Simulation, seed: int) -> Draw:
    of_nodes, of_owners, of_pods, of_times, of_earlier, of_phases = np.random.default_rng(
        seed
    ).spawn(6)
    capacity = [of_nodes.choice(_links(group), group.count) for group in simulation.nodes]
    owner_group = _numbers([group.count for group in simulation.owners])
    owner_mean = np.concatenate([_means(group, of_owners) for group in simulation.owners])
    node_count = sum(group.count for group in simulation.nodes)
    pods = _pods(simulation, owner_mean, of_pods, of_times)
    return Draw(
        seed=seed,
        capacity=np.concatenate(capacity),
        background=_background(simulation, seed, of_nodes),
        owner_group=owner_group,
        pods=pods,
        earlier=_earlier(simulation, owner_group, owner_mean, pods, of_earlier),
        exporter_phase=of_phases.random(node_count),
        kubelet_phase=of_phases.random(node_count),
        poll_phase=float(of_phases.random()),
    )


def _links(group: NodeGroup) -> FloatArray:
    return np.array(group.links_bytes_per_second)


def _numbers(counts: list[int]) -> IntArray:
    return np.repeat(np.arange(len(counts)), counts)


def _background(simulation: Simulation, seed: int, chance: Generator) -> Background:
    groups = [group.background for group in simulation.nodes]
    counts = [group.count for group in simulation.nodes]
    level = [
        chance.uniform(group.share[0], group.share[1], count)
        for group, count in zip(groups, counts, strict=True)
    ]
    return Background(
        seed=seed,
        level=np.concatenate(level),
        swing=np.repeat([group.swing for group in groups], counts),
        period_seconds=np.repeat([group.period_seconds for group in groups], counts),
        phase=chance.random(sum(counts)),
        noise=np.repeat([group.noise for group in groups], counts),
    )


def _means(group: OwnerGroup, chance: Generator) -> FloatArray:
    median = group.traffic.median_bytes_per_second
    return median * np.exp(group.traffic.sigma * chance.standard_normal(group.count))


def _pods(
    simulation: Simulation, owner_mean: FloatArray, chance: Generator, of_times: Generator
) -> DrawnPods:
    parts = []
    first_owner = 0
    for group in simulation.owners:
        owner = first_owner + chance.integers(group.count, size=group.pods)
        receive = _around(owner_mean[owner], group, chance)
        arrives_at = _arrivals(simulation, owner - first_owner, group.count, of_times)
        lives_for = np.full(group.pods, math.inf)
        if group.lifetime_seconds is not None:
            lives_for = of_times.exponential(group.lifetime_seconds, group.pods)
        parts.append(
            DrawnPods(owner, receive, receive * group.traffic.transmit, arrives_at, lives_for)
        )
        first_owner += group.count
    return _in_order(parts)


def _around(mean: FloatArray, group: OwnerGroup, chance: Generator) -> FloatArray:
    return _log_normal(mean, np.full(len(mean), group.traffic.pod_sigma), chance)


def _log_normal(mean: FloatArray, sigma: FloatArray, chance: Generator) -> FloatArray:
    """Around that mean: half of sigma squared is what the mean lies above the median."""
    drawn: FloatArray = mean * np.exp(sigma * chance.standard_normal(len(mean)) - sigma**2 / 2)
    return drawn


def _arrivals(
    simulation: Simulation, owner: IntArray, owner_count: int, chance: Generator
) -> FloatArray:
    over_seconds = simulation.arrivals.over_seconds
    if simulation.arrivals.by == "owner":
        return chance.uniform(0, over_seconds, owner_count)[owner]
    return chance.uniform(0, over_seconds, len(owner))


def _in_order(parts: list[DrawnPods]) -> DrawnPods:
    arrives_at = np.concatenate([part.arrives_at for part in parts])
    order = np.argsort(arrives_at, kind="stable")
    return DrawnPods(
        owner=np.concatenate([part.owner for part in parts])[order],
        receive=np.concatenate([part.receive for part in parts])[order],
        transmit=np.concatenate([part.transmit for part in parts])[order],
        arrives_at=arrives_at[order],
        lives_for=np.concatenate([part.lives_for for part in parts])[order],
    )


def _earlier(
    simulation: Simulation,
    owner_group: IntArray,
    owner_mean: FloatArray,
    pods: DrawnPods,
    chance: Generator,
) -> DrawnPods:
    """As many pods of each owner as will come, drawn around its mean like them."""
    owner = np.sort(pods.owner) if simulation.knowledge == "seen" else pods.owner[:0]
    groups = [simulation.owners[number] for number in owner_group[owner]]
    sigma = np.array([group.traffic.pod_sigma for group in groups])
    receive = _log_normal(owner_mean[owner], sigma, chance)
    transmit = receive * np.array([group.traffic.transmit for group in groups])
    nothing = np.zeros(len(owner))
    return DrawnPods(owner, receive, transmit, nothing, nothing)
