"""Turns links into a TrafficReading: each node's traffic, its capacity, and how far to trust both.

Called by the meter with Prometheus's answers, and by scenarios with the content of a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lowtide.cluster.columns import FloatArray, IntArray
from lowtide.objects.node import Node
from lowtide.readings.capacity import (
    SOURCES,
    CapacitySource,
    Stated,
    capacities_without_speed,
    is_given,
)
from lowtide.readings.demand import Owners, Traffic
from lowtide.readings.links import HIGHEST_SPEED_BYTES_PER_SECOND, Links
from lowtide.readings.peaks import Peaks
from lowtide.readings.reading import FRESH, STATES, State, TrafficReading
from lowtide.readings.request import RECEIVE, TRANSMIT, VALUE, TrafficRequest, directions


@dataclass(frozen=True, slots=True)
class Before:
    """What is kept from earlier readings: the peak rates, and which nodes were hot."""

    peaks: Peaks
    hot: frozenset[str]


NOTHING_BEFORE = Before(Peaks(), frozenset())


def before_the_next(reading: TrafficReading, before: Before) -> Before:
    """What to keep for the next reading. A node without a fresh reading is not hot now, but if it
    was hot, it has not cooled down either."""
    hot = {reading.names[position] for position in np.flatnonzero(reading.is_hot).tolist()}
    unknown = {reading.names[position] for position in np.flatnonzero(~reading.is_fresh).tolist()}
    return Before(
        peaks=reading.peaks,
        hot=frozenset(hot | (before.hot & unknown)),
    )


def judged(
    request: TrafficRequest,
    nodes: Sequence[Node],
    links: Links,
    before: Before,
    *,
    now: float,
    window_seconds: float,
    owners: Owners,
    stated: Stated,
    ahead_seconds: float = 0.0,
) -> TrafficReading:
    """Judge the links at `now`. `stated` has the stated capacities of the nodes. The times in
    `links` come from a clock that is `ahead_seconds` ahead of the clock of `now`."""
    names = [node.metadata.name for node in nodes]
    rates = Rates.from_links(links, request, window_seconds, len(nodes))
    # A Prometheus clock that is ahead of ours must not keep its answers fresh for longer.
    at = np.min([each.at for each in links.by_direction.values()], axis=0)
    at = np.minimum(at - ahead_seconds, now)
    peaks = before.peaks.with_rates(_plausible(rates.peak), names, stated.kind, stated.kinds)
    guessed = capacities_without_speed(stated, peaks, names)
    capacity, source = _by_speed(*guessed, links, rates)
    share = _shares(guessed[0], links, rates)
    state = _states(links, rates.value, at, request, now)
    may_be_hot = (state == FRESH) & is_given(source)
    return TrafficReading(
        request=request,
        published_at=now,
        sampled_at=float(np.nanmax(at)) if np.isfinite(at).any() else math.nan,
        window_seconds=window_seconds,
        names=names,
        value=rates.value,
        receive=rates.receive,
        transmit=rates.transmit,
        peaks=peaks,
        capacity=capacity,
        capacity_source=source,
        share=share,
        at=at,
        state=state,
        is_hot=may_be_hot & (share >= _hot_threshold(request, names, before.hot)),
        pods=owners.expectation(_unknown_pod_traffic(request, rates, capacity)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The traffic of links and nodes. `load` has one element per link, the others one per node."""

    load: FloatArray  # bytes per second that count against the capacity; NaN where unknown
    main: IntArray  # the position of the node's busiest link; -1 if it has none
    value: FloatArray
    receive: FloatArray
    transmit: FloatArray
    peak: FloatArray

    @classmethod
    def from_links(
        cls, links: Links, request: TrafficRequest, window_seconds: float, node_count: int
    ) -> "Rates":
        by_direction = {name: each.value for name, each in links.by_direction.items()}
        totals = [_total(links, name, node_count) for name in by_direction]
        value = np.max(totals, axis=0) if request.direction == "max" else np.sum(totals, axis=0)
        scale = 1 / window_seconds if request.measure == "increase" else 1.0
        nothing = np.full(len(links.row), math.nan)
        own = by_direction.get(VALUE, nothing)
        receive = scale * by_direction.get(RECEIVE, own)
        transmit = scale * by_direction.get(TRANSMIT, own)
        if not request.is_rate:
            receive = transmit = nothing
        load = loaded(request, receive, transmit)
        main = _busiest(links.row, load, node_count)
        return cls(
            load=load,
            main=main,
            value=value,
            receive=_values_at(receive, main),
            transmit=_values_at(transmit, main),
            peak=_values_at(
                np.fmax(receive, transmit),
                _busiest(links.row, np.fmax(receive, transmit), node_count),
            ),
        )


def _plausible(rates: FloatArray) -> FloatArray:
    return np.where(rates < HIGHEST_SPEED_BYTES_PER_SECOND, rates, math.nan)


def loaded(request: TrafficRequest, receive: FloatArray, transmit: FloatArray) -> FloatArray:
    """The rate that counts against a link's capacity, which a link carries in each direction."""
    match request.direction:
        case "receive":
            return receive
        case "transmit":
            return transmit
        case "max":
            return np.fmax(receive, transmit)
        case "sum":
            return (receive + transmit) / 2


def share_with(
    request: TrafficRequest,
    receive: FloatArray,
    transmit: FloatArray,
    capacity: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """The used share if the busiest device carried these rates; at least the measured share."""
    return np.fmax(loaded(request, receive, transmit) / capacity, share)


def share_after(
    request: TrafficRequest,
    before: tuple[FloatArray, FloatArray],
    after: tuple[FloatArray, FloatArray],
    capacity: FloatArray,
    share: FloatArray,
) -> FloatArray:
    """The share if the link carried `after` instead of `before`, each (receive, transmit); never
    below 0."""
    gained = loaded(request, *after) - loaded(request, *before)
    return np.maximum(share + gained / capacity, 0.0)


def _total(links: Links, name: str, node_count: int) -> FloatArray:
    """The sum over each node's devices; NaN if not answered, or if any value is implausible."""
    direction = links.by_direction[name]
    # A device that is missing from this query counts as 0.
    sound = np.nan_to_num(direction.value)
    total = np.bincount(links.row, weights=sound, minlength=node_count).astype(np.float64)
    unsound = np.bincount(links.row[direction.is_unsound], minlength=node_count) > 0
    total[~direction.is_answered | unsound] = math.nan
    return total


def _busiest(rows: IntArray, load: FloatArray, node_count: int) -> IntArray:
    """The position of the highest load of each row; -1 where a row has none."""
    found = np.full(node_count, -1, np.int64)
    order = np.lexsort((np.nan_to_num(load, nan=-1.0), rows))
    found[rows[order]] = order  # the last assignment wins: the highest load of each row
    return found


def _values_at(values: FloatArray, positions: IntArray) -> FloatArray:
    found = np.full(len(positions), math.nan)
    found[positions >= 0] = values[positions[positions >= 0]]
    return found


def _shares(guessed: FloatArray, links: Links, rates: Rates) -> FloatArray:
    """Each node's highest share of any link: of the link's speed, else of the node's capacity."""
    by_link = np.where(np.isnan(links.speed), guessed[links.row], links.speed)
    share = np.full(len(guessed), -math.inf)
    np.maximum.at(share, links.row, np.nan_to_num(rates.load / by_link, nan=-math.inf))
    return np.where(np.isfinite(share), share, math.nan)


def _by_speed(
    guessed: FloatArray, source: IntArray, links: Links, rates: Rates
) -> tuple[FloatArray, IntArray]:
    """The capacity of each node's busiest link, and its index in SOURCES."""
    main_speed = np.where(rates.main < 0, links.fastest, _values_at(links.speed, rates.main))
    has_speed = ~np.isnan(main_speed)
    by_speed = SOURCES.index(CapacitySource.SPEED)
    return np.where(has_speed, main_speed, guessed), np.where(has_speed, by_speed, source)


def _states(
    links: Links, value: FloatArray, at: FloatArray, request: TrafficRequest, now: float
) -> NDArray[np.int8]:
    """The state of each node; the first one that applies counts."""
    each = [links.by_direction[name] for name in directions(request)]
    codes = {state: STATES.index(state) for state in State}
    return np.select(
        [
            np.any([one.is_ambiguous & ~one.is_answered for one in each], axis=0),
            ~np.all([one.is_answered for one in each], axis=0),
            np.isnan(value),
            now - at > request.stale_after_seconds,
        ],
        [
            codes[State.IMPLAUSIBLE],
            codes[State.MISSING],
            codes[State.IMPLAUSIBLE],
            codes[State.STALE],
        ],
        default=FRESH,
    ).astype(np.int8)


def _hot_threshold(
    request: TrafficRequest, names: Sequence[str], were_hot: frozenset[str]
) -> FloatArray:
    """The share from which each node is hot. It is lower for nodes that were hot (hysteresis)."""
    if not were_hot:
        return np.full(len(names), request.hot_share)
    was_hot = np.array([name in were_hot for name in names], np.bool_)
    return np.where(was_hot, request.hot_share - request.cooling_share, request.hot_share)


def _unknown_pod_traffic(request: TrafficRequest, rates: Rates, capacity: FloatArray) -> Traffic:
    """The traffic assumed for a pod with unknown traffic: a fixed rate, else a share of the median
    capacity, or of the busiest node's rate if the request is relative."""
    known = np.fmax(rates.receive, rates.transmit) if request.is_relative else capacity
    known = known[known > 0]
    whole = 0.0
    if len(known):
        whole = float(known.max() if request.is_relative else np.median(known))
    amount = request.pod_bytes_per_second or request.pod_share * whole
    return Traffic(amount, amount)
