"""Turns Prometheus's answers into links: one per counted device of a node, with its rates.

The meter calls it at each poll. A device that two jobs scrape is one link. The members of a bond
and the VLANs of a device are not counted again."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from lowtide.cluster.columns import BoolArray, FloatArray, IntArray
from lowtide.readings.amounts import LEAST_BYTES_PER_SECOND
from lowtide.readings.answers import Answers, KeptAnswer, KeptAnswers, Shape
from lowtide.readings.matching import MatchedRows, NodeMatcher
from lowtide.readings.request import FLAGS, NUMBER, PARENT, SPEED

# Speeds from here on are implausible. Virtual devices report -125000, some drivers all ones.
HIGHEST_SPEED_BYTES_PER_SECOND: Final = 1e12

# Measured values from here on are implausible, in any unit: a 64-bit counter holds less. Sums of
# lower values stay finite.
LARGEST_MEASURED: Final = 2.0**64

# Linux's device flags.
BOND_FLAG: Final = 0x400
BOND_MEMBER_FLAG: Final = 0x800

OF_DEVICES: Final = (SPEED, FLAGS, PARENT, NUMBER)

_VLAN_BY_NAME: Final = re.compile(r"(.+)\.[0-9]+")
_DEVICE_BITS: Final = 24
_NO_ROW: Final = -1
_NO_DEVICE: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The answer to one query: a value per link, and the state of each node."""

    value: FloatArray  # one per link; NaN where not answered or implausible
    is_unsound: BoolArray  # one per link: answered, but implausible
    at: FloatArray  # one per node: the time of its oldest sample; NaN where not answered
    is_answered: BoolArray  # one per node
    is_ambiguous: BoolArray  # one per node: a series may belong to it or to another node


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """All links, sorted by the row of their node."""

    row: IntArray
    device: tuple[str, ...]
    speed: FloatArray  # bytes per second; NaN where Prometheus has no plausible speed
    by_direction: Mapping[str, Measured]
    fastest: FloatArray  # one per node: the highest speed of its devices, measured or not


@dataclass(frozen=True, slots=True, eq=False)
class _Picked:
    """One series per device of a node, sorted by key."""

    key: IntArray
    value: FloatArray
    at: FloatArray
    ambiguous_rows: set[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Matched:
    """The series of an answer that belong to exactly one node, sorted by key."""

    position: IntArray  # in the answer
    key: IntArray
    is_unique: bool  # whether each key occurs once
    ambiguous_rows: set[int]


def links_of(
    answers: Answers, asked: Sequence[str], matcher: NodeMatcher, node_count: int
) -> Links:
    """Find the links in one set of answers. `asked` names the queries that measure traffic; other
    answers describe the devices."""
    finder = LinkFinder()
    finder.match(matcher)
    finder.take({name: answers[name] for name in (*asked, *OF_DEVICES) if name in answers})
    return finder.links(asked, node_count)


class LinkFinder:
    """Finds links at each poll. It keeps what it derived from an answer until a new one arrives,
    because most queries are sent rarely."""

    def __init__(self) -> None:
        self._answers = KeptAnswers()
        self._matcher = NodeMatcher((), (), "auto")
        self._rows: list[MatchedRows] = []  # of each target matched so far, by the target's number
        self._matched: dict[Shape, _Matched] = {}
        self._picked: dict[str, _Picked] = {}

    def take(self, answers: Answers) -> None:
        """Store answers about devices; they replace earlier answers to the same queries."""
        for name, series in answers.items():
            self._answers.take(name, series)
            self._picked.pop(name, None)
        for gone in self._matched.keys() - set(self._answers.shapes()):
            del self._matched[gone]
        if self._answers.is_untidy:
            self._reset()

    def match(self, matcher: NodeMatcher) -> None:
        """Match series to nodes with this matcher from now on."""
        self._matcher = matcher
        self._reset()

    def some_labels(self, name: str, count: int) -> Sequence[dict[str, str]]:
        """The labels of at most `count` series of an answer, spread over all of them."""
        labels = self._answers.answer_named(name).shape.labels
        return labels[:: len(labels) // count + 1]

    def links(self, asked: Sequence[str], node_count: int) -> Links:
        picked = {name: self._pick(name) for name in asked}
        keys = _merged([one.key for one in picked.values()])
        is_child = self._is_child(keys)
        if is_child.any():
            keys = keys[~is_child]
        names = list(self._answers.devices)
        by_speed = self._pick(SPEED)
        fastest = np.full(node_count, math.nan)
        np.fmax.at(fastest, by_speed.key >> _DEVICE_BITS, by_speed.value)
        return Links(
            row=keys >> _DEVICE_BITS,
            device=tuple(names[code] for code in (keys & _low_bits()).tolist()),
            speed=_values_for(keys, by_speed),
            by_direction={name: _measured(keys, one, node_count) for name, one in picked.items()},
            fastest=fastest,
        )

    def _reset(self) -> None:
        """Drop all that was derived, and the targets and devices that no answer has any more."""
        self._answers.tidy()
        self._rows.clear()
        self._matched.clear()
        self._picked.clear()

    def _pick(self, name: str) -> _Picked:
        if name not in self._picked:
            answer = self._answers.answer_named(name)
            if name == SPEED:
                answer = replace(answer, value=_plausible_speeds(answer.value))
            self._picked[name] = _picked(answer, self._match(answer.shape))
        return self._picked[name]

    def _match(self, shape: Shape) -> _Matched:
        found = self._matched.get(shape)
        if found is None:
            for target in islice(self._answers.targets, len(self._rows), None):
                self._rows.append(self._matcher.rows_of(target))
            found = self._matched[shape] = _matched(shape, self._rows)
        return found

    def _is_child(self, keys: IntArray) -> BoolArray:
        """True for bond members and VLANs whose parent device is also among the keys."""

        def asked(name: str) -> FloatArray:
            return np.nan_to_num(_values_for(keys, self._pick(name)))

        rows = keys >> _DEVICE_BITS
        flags = _whole_numbers(asked(FLAGS))
        is_child: BoolArray = flags & BOND_MEMBER_FLAG != 0
        if is_child.any():
            is_child &= np.isin(rows, rows[flags & BOND_FLAG != 0])
        number, parent = _whole_numbers(asked(NUMBER)), _whole_numbers(asked(PARENT))
        is_stacked = (number > 0) & (parent > 0) & (parent != number)
        if is_stacked.any():
            is_child |= is_stacked & np.isin(_key(rows, parent), _key(rows, number))
        vlan_parent = self._vlan_parents()[keys & _low_bits()]
        is_vlan = vlan_parent != _NO_DEVICE
        if is_vlan.any():
            is_child |= is_vlan & np.isin(_key(rows, vlan_parent), keys)
        return is_child

    def _vlan_parents(self) -> IntArray:
        """For each device number, the number of its parent if its name is that of a VLAN."""
        codes = self._answers.devices
        vlans = (_VLAN_BY_NAME.fullmatch(name) for name in codes)
        parents = (_NO_DEVICE if vlan is None else codes.get(vlan[1], _NO_DEVICE) for vlan in vlans)
        return np.fromiter(parents, np.int64, len(codes))


def _plausible_speeds(speed: FloatArray) -> FloatArray:
    is_plausible = (speed >= LEAST_BYTES_PER_SECOND) & (speed < HIGHEST_SPEED_BYTES_PER_SECOND)
    return np.where(is_plausible, speed, math.nan)


def _measured(keys: IntArray, picked: _Picked, node_count: int) -> Measured:
    is_kept = _is_among(picked.key, keys)
    rows, at = picked.key[is_kept] >> _DEVICE_BITS, picked.at[is_kept]
    is_answered = np.bincount(rows, minlength=node_count) > 0
    oldest = np.full(node_count, math.inf)
    np.minimum.at(oldest, rows, at)
    oldest[~is_answered] = math.nan
    is_ambiguous = np.zeros(node_count, np.bool_)
    is_ambiguous[list(picked.ambiguous_rows)] = True
    value, is_known = _values_for(keys, picked), _is_among(keys, picked.key)
    is_sound = (value >= 0) & (value < LARGEST_MEASURED)
    return Measured(
        value=np.where(is_sound, value, math.nan),
        is_unsound=is_known & ~is_sound,
        at=oldest,
        is_answered=is_answered,
        is_ambiguous=is_ambiguous,
    )


def _values_for(keys: IntArray, picked: _Picked) -> FloatArray:
    """The value for each key; NaN where there is none."""
    if np.array_equal(keys, picked.key):
        return picked.value
    found = np.full(len(keys), math.nan)
    is_known = _is_among(keys, picked.key)
    found[is_known] = picked.value[_is_among(picked.key, keys)]
    return found


def _is_among(some: IntArray, others: IntArray) -> BoolArray:
    """Which of `some` are in `others`. Both must be sorted, without duplicates."""
    if np.array_equal(some, others):
        return np.ones(len(some), np.bool_)
    if not len(others):
        return np.zeros(len(some), np.bool_)
    positions = np.minimum(np.searchsorted(others, some), len(others) - 1)
    is_among: BoolArray = others[positions] == some
    return is_among


def _matched(shape: Shape, rows_of_targets: Sequence[MatchedRows]) -> _Matched:
    row_of_target = [rows[0] if len(rows) == 1 else _NO_ROW for rows in rows_of_targets]
    row = np.array(row_of_target, np.int64)[shape.target]
    is_between = np.array([len(rows) > 1 for rows in rows_of_targets], np.bool_)
    between = np.unique(shape.target[is_between[shape.target]]).tolist()
    key = _key(row, shape.device)
    position: IntArray = np.argsort(key, kind="stable")
    position = position[row[position] != _NO_ROW]
    key = key[position]
    return _Matched(
        position=position,
        key=key,
        is_unique=bool((key[1:] != key[:-1]).all()),
        ambiguous_rows={each for target in between for each in rows_of_targets[target]},
    )


def _picked(answer: KeptAnswer, matched: _Matched) -> _Picked:
    """Keep one series per device: a plausible one, then the newest, then the larger, because the
    smaller may come from an exporter that does not see the host's devices."""
    key, value, at = matched.key, answer.value[matched.position], answer.at[matched.position]
    if not matched.is_unique:
        is_plausible = (value >= 0) & (value < LARGEST_MEASURED)
        order: IntArray = np.lexsort((value, at, is_plausible, key))
        is_last = np.append(key[1:] != key[:-1], True)  # keys are already sorted
        order = order[is_last]
        key, value, at = key[is_last], value[order], at[order]
    return _Picked(key, value, at, matched.ambiguous_rows)


def _merged(keys: Sequence[IntArray]) -> IntArray:
    """All keys, sorted, each once. Fast if all sequences are equal, which is the usual case."""
    first, *others = keys
    if all(np.array_equal(first, each) for each in others):
        return first
    merged: IntArray = np.unique(np.concatenate(keys))
    return merged


def _key(rows: IntArray, number: IntArray | int) -> IntArray:
    """A node's row and a device number as one number."""
    return (rows << _DEVICE_BITS) | number


def _whole_numbers(values: FloatArray) -> IntArray:
    """The values as integers; 0 for what cannot be a device number."""
    is_one = (values >= 0) & (values <= _low_bits())
    return np.where(is_one, values, 0).astype(np.int64)


def _low_bits() -> int:
    return (1 << _DEVICE_BITS) - 1
