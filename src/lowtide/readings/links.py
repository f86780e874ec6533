"""From Prometheus's answers to links: one per device of a node that counts, with its rates.

The meter calls it at each poll. A device that two jobs scrape is one device; a bond's members and
a device's VLANs are not counted beside it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.readings.matching import NO_ROW, NodeMatcher
from lowtide.readings.request import FLAGS, NUMBER, PARENT, SPEED
from lowtide.readings.series import Series

Answers = Mapping[str, Sequence[Series]]

# Virtual devices report a speed of -125000, some drivers an all-ones number.
HIGHEST_SPEED_BYTES_PER_SECOND: Final = 1e12

# Linux's device flags.
BOND_FLAG: Final = 0x400
BOND_MEMBER_FLAG: Final = 0x800

_VLAN_BY_NAME: Final = re.compile(r"(.+)\.[0-9]+")
_DEVICE_BITS: Final = 24


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """What one query says of each link, and of each node whether it was answered at all."""

    value: FloatArray  # one per link; NaN where not answered or not plausible
    is_unsound: BoolArray  # one per link: answered, and not plausible
    at: FloatArray  # one per node: of its oldest sample; NaN where not answered
    is_answered: BoolArray
    is_ambiguous: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Sorted by row. `speed` is NaN where Prometheus says nothing plausible."""

    row: IntArray
    device: tuple[str, ...]
    speed: FloatArray
    by_direction: Mapping[str, Direction]
    fastest: FloatArray  # one per node: the highest speed of its devices, also unmeasured ones


@dataclass(frozen=True, slots=True, eq=False)
class _Picked:
    """One series per device of a node, sorted by key."""

    key: IntArray
    value: FloatArray
    at: FloatArray
    ambiguous_rows: set[int]


def links_of(
    answers: Answers, asked: Sequence[str], matcher: NodeMatcher, node_count: int
) -> Links:
    """`asked` are the queries that measure; what else is in `answers` tells about the devices."""
    return LinkFinder(matcher).links(answers, asked, node_count)


class LinkFinder:
    """Finds links poll after poll. What it made of an answer it keeps until there is another one:
    most of them are asked for seldom."""

    def __init__(self, matcher: NodeMatcher) -> None:
        self._matcher = matcher
        self._codes: dict[str, int] = {}  # of devices by name
        self._kept: dict[str, tuple[Sequence[Series], _Picked]] = {}

    def links(self, answers: Answers, asked: Sequence[str], node_count: int) -> Links:
        picked = {name: self._picked(answers, name) for name in asked}
        keys: IntArray = np.unique(np.concatenate([one.key for one in picked.values()]))
        keys = keys[~self._is_child(keys, answers)]
        names = list(self._codes)
        by_speed = self._picked(answers, SPEED)
        fastest = np.full(node_count, math.nan)
        np.fmax.at(fastest, by_speed.key >> _DEVICE_BITS, by_speed.value)
        return Links(
            row=keys >> _DEVICE_BITS,
            device=tuple(names[code] for code in (keys & _low_bits()).tolist()),
            speed=_on(keys, by_speed),
            by_direction={name: _direction(keys, one, node_count) for name, one in picked.items()},
            fastest=fastest,
        )

    def _picked(self, answers: Answers, name: str) -> _Picked:
        answer = answers.get(name, ())
        kept = self._kept.get(name)
        if kept is None or kept[0] is not answer:
            series = _plausible_speeds(answer) if name == SPEED else answer
            kept = self._kept[name] = (answer, _picked(series, self._matcher, self._codes))
        return kept[1]

    def _is_child(self, keys: IntArray, answers: Answers) -> BoolArray:
        """Members of a bond, and VLANs, whose parent is there as well."""

        def asked(name: str) -> FloatArray:
            return np.nan_to_num(_on(keys, self._picked(answers, name)))

        rows = keys >> _DEVICE_BITS
        flags = asked(FLAGS).astype(np.int64)
        is_child: BoolArray = (flags & BOND_MEMBER_FLAG != 0) & np.isin(
            rows, rows[flags & BOND_FLAG != 0]
        )
        number, parent = asked(NUMBER).astype(np.int64), asked(PARENT).astype(np.int64)
        is_upon_another = (number > 0) & (parent > 0) & (parent != number)
        is_child |= is_upon_another & np.isin(_key(rows, parent), _key(rows, number))
        codes = self._codes
        for name, code in tuple(codes.items()):
            vlan = _VLAN_BY_NAME.fullmatch(name)
            if vlan is not None and vlan[1] in codes:
                is_this = keys & _low_bits() == code
                is_child |= is_this & np.isin(_key(rows, codes[vlan[1]]), keys)
        return is_child


def _plausible_speeds(series: Sequence[Series]) -> list[Series]:
    return [one for one in series if 0 < one.value < HIGHEST_SPEED_BYTES_PER_SECOND]


def _direction(keys: IntArray, picked: _Picked, node_count: int) -> Direction:
    kept = np.isin(picked.key, keys)
    rows, at = picked.key[kept] >> _DEVICE_BITS, picked.at[kept]
    is_answered = np.bincount(rows, minlength=node_count) > 0
    oldest = np.full(node_count, math.inf)
    np.minimum.at(oldest, rows, at)
    oldest[~is_answered] = math.nan
    is_ambiguous = np.zeros(node_count, np.bool_)
    is_ambiguous[list(picked.ambiguous_rows)] = True
    value, is_known = _on(keys, picked), np.isin(keys, picked.key)
    is_sound = (value >= 0) & (value < math.inf)
    return Direction(
        value=np.where(is_sound, value, math.nan),
        is_unsound=is_known & ~is_sound,
        at=oldest,
        is_answered=is_answered,
        is_ambiguous=is_ambiguous,
    )


def _on(keys: IntArray, picked: _Picked) -> FloatArray:
    """The values at these keys; NaN where there is none."""
    found = np.full(len(keys), math.nan)
    if not len(keys) or not len(picked.key):
        return found
    positions = np.minimum(np.searchsorted(keys, picked.key), len(keys) - 1)
    hits = keys[positions] == picked.key
    found[positions[hits]] = picked.value[hits]
    return found


def _picked(series: Sequence[Series], matcher: NodeMatcher, codes: dict[str, int]) -> _Picked:
    """Of each device the soundest series, then the freshest, then the larger: the smaller may
    come from an exporter that does not see the host's devices."""
    found, ambiguous = matcher.rows(series)
    rows = np.array(found, np.int64)
    device = np.array(
        [codes.setdefault(one.labels.get("device", ""), len(codes)) for one in series], np.int64
    )
    value = np.array([one.value for one in series], np.float64)
    at = np.array([one.at for one in series], np.float64)
    is_plausible = (value >= 0) & (value < math.inf)
    key = _key(rows, device)
    order: IntArray = np.lexsort((value, at, is_plausible, key))
    order = order[rows[order] != NO_ROW]
    key = key[order]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = key[1:] != key[:-1]
    order = order[is_last]
    return _Picked(key[is_last], value[order], at[order], ambiguous)


def _key(rows: IntArray, number: IntArray | int) -> IntArray:
    """A device of a node as one number."""
    return (rows << _DEVICE_BITS) | number


def _low_bits() -> int:
    return (1 << _DEVICE_BITS) - 1
