"""What is known of each node's traffic, how far to trust it, and how answers become that.

The poller in telemetry assembles and publishes; NetworkTraffic reads; scenarios make their own."""

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lowtide.readings.matching import NO_ROW, NodeIdentity, NodeMatcher
from lowtide.readings.request import RECEIVE, SPEED, TRANSMIT, UNAME, TrafficRequest, directions
from lowtide.readings.series import Series

# Virtual devices report a speed of -125000, some drivers an all-ones number.
HIGHEST_SPEED_BYTES_PER_SECOND: Final = 1e12

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class State(enum.Enum):
    """How far a node's reading can be trusted."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"
    IMPLAUSIBLE = "implausible"


JUDGEMENTS: Final = tuple(State)


class NodeReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node's traffic, in the unit of the request's measure, summed over devices.

    A value that is not known is NaN, never 0: an unknown node must not look idle. `receive` and
    `transmit` are None where that direction was not asked for, not answered or not plausible.
    Without arguments it is the reading of a node that nothing is known of."""

    value: float = math.nan
    receive: float | None = None
    transmit: float | None = None
    capacity_bytes_per_second: float | None = None
    at: float = math.nan
    state: State = State.MISSING
    expected: float = 0.0


class TrafficReading(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of all nodes at one moment; `version` grows with each one published.

    A node that is not in `by_node` joined after the poll: take it for missing."""

    request: TrafficRequest
    published_at: float
    version: int
    by_node: Mapping[str, NodeReading]


class _Column(msgspec.Struct, frozen=True):
    """One answer, one place per node."""

    amount: FloatArray  # summed over devices; NaN where not answered or not plausible
    at: FloatArray  # of the oldest sample in the sum; NaN where not answered
    is_answered: BoolArray
    is_ambiguous: BoolArray


def assemble(
    request: TrafficRequest,
    answers: Mapping[str, Sequence[Series]],
    identities: Sequence[NodeIdentity],
    now: float,
    *,
    version: int = 0,
) -> TrafficReading:
    """Turn answers, keyed as `queries` keys them, into one reading per node."""
    matcher = NodeMatcher(identities, answers.get(UNAME, ()), request.match_label)
    columns = {
        name: _column(answers.get(name, ()), matcher, len(identities))
        for name in (RECEIVE, TRANSMIT)
    }
    asked = [columns[name] for name in directions(request)]
    sound_speeds = [
        one for one in answers.get(SPEED, ()) if 0 < one.value < HIGHEST_SPEED_BYTES_PER_SECOND
    ]
    value, at, state = _judged(request, asked, now)
    by_node = {
        identity.name: NodeReading(
            value=math.nan if value is None else value,
            receive=receive,
            transmit=transmit,
            capacity_bytes_per_second=capacity,
            at=math.nan if at is None else at,
            state=state,
        )
        for identity, value, receive, transmit, capacity, at, state in zip(
            identities,
            _known(value),
            _known(columns[RECEIVE].amount),
            _known(columns[TRANSMIT].amount),
            _known(_column(sound_speeds, matcher, len(identities)).amount),
            _known(at),
            state,
            strict=True,
        )
    }
    return TrafficReading(request=request, published_at=now, version=version, by_node=by_node)


def age(reading: TrafficReading, now: float, *, version: int | None = None) -> TrafficReading:
    """The same values judged again at a later time, for when no new answer came."""
    stale_after_seconds = reading.request.stale_after_seconds
    return TrafficReading(
        request=reading.request,
        published_at=now,
        version=reading.version + 1 if version is None else version,
        by_node={
            name: _aged(one, now, stale_after_seconds) for name, one in reading.by_node.items()
        },
    )


def _aged(one: NodeReading, now: float, stale_after_seconds: float) -> NodeReading:
    if one.state is State.FRESH and now - one.at > stale_after_seconds:
        return msgspec.structs.replace(one, state=State.STALE)
    return one


def _judged(
    request: TrafficRequest, asked: Sequence[_Column], now: float
) -> tuple[FloatArray, FloatArray, list[State]]:
    """Value, sample time and state of each node; the first state that applies counts."""
    amounts = np.array([column.amount for column in asked])  # (directions, nodes)
    value = amounts.max(axis=0) if request.direction == "max" else amounts.sum(axis=0)
    # A clock ahead of ours must not keep its answers fresh for longer than others'.
    at = np.minimum(np.min([column.at for column in asked], axis=0), now)
    state = np.select(
        [
            np.any([column.is_ambiguous & ~column.is_answered for column in asked], axis=0),
            ~np.all([column.is_answered for column in asked], axis=0),
            np.isnan(value),
            now - at > request.stale_after_seconds,
        ],
        [
            JUDGEMENTS.index(State.IMPLAUSIBLE),
            JUDGEMENTS.index(State.MISSING),
            JUDGEMENTS.index(State.IMPLAUSIBLE),
            JUDGEMENTS.index(State.STALE),
        ],
        default=JUDGEMENTS.index(State.FRESH),
    )
    return value, at, [JUDGEMENTS[code] for code in state.tolist()]


def _column(series: Sequence[Series], matcher: NodeMatcher, count: int) -> _Column:
    found, ambiguous = matcher.rows(series)
    rows = np.array(found, dtype=np.int64)
    value = np.array([one.value for one in series], dtype=np.float64)
    at = np.array([one.at for one in series], dtype=np.float64)
    is_plausible = (value >= 0) & (value < math.inf)
    chosen = _one_per_device(series, rows, (is_plausible, at, value))
    rows, value, at, is_plausible = rows[chosen], value[chosen], at[chosen], is_plausible[chosen]

    is_answered = np.bincount(rows, minlength=count) > 0
    is_unsound = np.bincount(rows[~is_plausible], minlength=count) > 0
    sound = np.where(is_plausible, value, 0.0)
    amount = np.bincount(rows, weights=sound, minlength=count).astype(np.float64)
    amount[~is_answered | is_unsound] = math.nan
    oldest = np.full(count, math.inf)
    np.minimum.at(oldest, rows, at)
    oldest[~is_answered] = math.nan
    is_ambiguous = np.zeros(count, dtype=np.bool_)
    is_ambiguous[list(ambiguous)] = True
    return _Column(amount, oldest, is_answered, is_ambiguous)


def _one_per_device(
    series: Sequence[Series], rows: IntArray, trust: tuple[BoolArray, FloatArray, FloatArray]
) -> IntArray:
    """Which series count: a device that two jobs scrape is one device still.

    Sound before unsound, then the fresher, then the larger: the smaller may come from an exporter
    that does not see the host's devices."""
    codes: dict[str, int] = {}
    device = np.array(
        [codes.setdefault(one.labels.get("device", ""), len(codes)) for one in series],
        dtype=np.int64,
    )
    is_plausible, at, value = trust
    order: IntArray = np.lexsort((value, at, is_plausible, device, rows))
    order = order[rows[order] != NO_ROW]
    rows, device = rows[order], device[order]
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = (rows[1:] != rows[:-1]) | (device[1:] != device[:-1])
    return order[is_last]


def _known(column: FloatArray) -> list[float | None]:
    """As Python's own, with None for NaN."""
    return [None if value != value else value for value in column.tolist()]
