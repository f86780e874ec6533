"""Readings in a recording: whole the first time, then what has changed since the one before.

`ReadingWriter` makes the form of a reading and `ReadingReader` the reading of its form."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from lowtide.cluster.columns import FloatArray
from lowtide.cluster.reading import Expectation, Reading
from lowtide.readings.demand import Owner, PodTraffic, Traffic
from lowtide.readings.usage import PodRequests
from lowtide.records.derived_columns import Derived, derived, with_derived
from lowtide.records.hashed_names import HashedNames
from lowtide.records.recording_header import RecordingError

Number = float | None | str  # null is NaN; "Infinity", "-Infinity"
ColumnForm = list[Number] | Number | Derived
OwnerForm = tuple[str, str, str, float, float]  # namespace, kind, name; receive, transmit

# Kubernetes is built for 5,000 nodes, and plugins read some ten columns of each. A single number
# may stand for a whole column.
_MOST_NUMBERS = 2_000_000

_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}


class ExpectationForm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Of PodTraffic: of a pod whose owner is not known, and the owners that are new or changed,
    and those that are forgotten."""

    type: str
    of_any: tuple[float, float] = (0.0, 0.0)
    owners: list[OwnerForm] = []
    gone: list[Owner] = []


class ReadingForm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is not there is as it was in the source's reading before. A single number in place of
    a column stands in each row of it."""

    sampled_at: Number = None
    window_seconds: float = 0.0
    names: list[str] | UnsetType = UNSET
    columns: dict[str, ColumnForm] = {}
    gone: list[str] = []  # columns
    of_others: dict[str, Number] | UnsetType = UNSET
    expects: ExpectationForm | UnsetType | None = UNSET


class ReadingWriter:
    """For the readings of one source, in their order."""

    def __init__(self, hashed: HashedNames | None = None) -> None:
        self._hashed = hashed
        self._before: Reading | None = None

    def form(self, reading: Reading) -> ReadingForm:
        before, self._before = self._before, reading
        if before is None:
            before = Reading()
            is_first = True
        else:
            is_first = False
        has_new_names = is_first or list(before.names) != list(reading.names)
        return ReadingForm(
            sampled_at=_number(reading.sampled_at),
            window_seconds=reading.window_seconds,
            names=self._names(reading.names) if has_new_names else UNSET,
            columns={
                name: derived(name, reading.columns) or _column(values)
                for name, values in reading.columns.items()
                if has_new_names or not _is_same(values, before.columns.get(name))
            },
            gone=[name for name in before.columns if name not in reading.columns],
            of_others=self._of_others(before, reading),
            expects=self._expects(before.expects, reading.expects, is_first=is_first),
        )

    def _names(self, names: Iterable[str]) -> list[str]:
        return [self._name(name) for name in names]

    def _name(self, text: str) -> str:
        return text if self._hashed is None else self._hashed.name(text)

    def _of_others(self, before: Reading, reading: Reading) -> dict[str, Number] | UnsetType:
        numbers = {name: _number(value) for name, value in reading.of_others.items()}
        is_same = numbers == {name: _number(value) for name, value in before.of_others.items()}
        return UNSET if is_same else numbers

    def _expects(
        self, before: Expectation | None, expects: Expectation | None, *, is_first: bool
    ) -> ExpectationForm | UnsetType | None:
        if expects is before and not is_first:
            return UNSET
        if expects is None:
            return None
        if isinstance(expects, PodRequests):
            return ExpectationForm("PodRequests")
        if not isinstance(expects, PodTraffic):
            kind = type(expects)
            return ExpectationForm(f"{kind.__module__}:{kind.__qualname__}")
        known, owners = owners_of(before), owners_of(expects)
        of_any = traffic_of_any(expects)
        return ExpectationForm(
            "PodTraffic",
            of_any=(of_any.receive, of_any.transmit),
            owners=[
                (*self._owner(owner), *traffic)
                for owner, traffic in owners.items()
                if known.get(owner) != traffic
            ],
            gone=[self._owner(owner) for owner in known if owner not in owners],
        )

    def _owner(self, owner: Owner) -> Owner:
        namespace, kind, name = owner
        return self._name(namespace), kind, self._name(name)


class ReadingReader:
    """For the forms of one source, in their order."""

    def __init__(self) -> None:
        self._before = Reading()

    def reading(self, form: ReadingForm) -> Reading:
        before = self._before
        names = before.names if form.names is UNSET else tuple(form.names)
        kept = {name: values for name, values in before.columns.items() if name not in form.gone}
        count = len(names) * len(kept.keys() | form.columns.keys())
        if count > _MOST_NUMBERS:
            raise RecordingError(f"a reading has {count} numbers; at most {_MOST_NUMBERS} are read")
        columns = kept | {
            name: _array(values, len(names))
            for name, values in form.columns.items()
            if not isinstance(values, Derived)
        }
        _derive(columns, form)
        others = form.of_others
        self._before = Reading(
            names=names,
            columns=columns,
            of_others=before.of_others if others is UNSET else _floats(others),
            expects=before.expects if form.expects is UNSET else self._expects(form.expects),
            sampled_at=_float(form.sampled_at),
            window_seconds=form.window_seconds,
        )
        return self._before

    def _expects(self, form: ExpectationForm | None) -> Expectation | None:
        if form is None:
            return None
        if form.type == "PodRequests":
            return PodRequests()
        if form.type != "PodTraffic":
            raise RecordingError(
                f"a reading expects of pods what {form.type} says, and only what PodTraffic and "
                "PodRequests say is recorded"
            )
        owners = dict(owners_of(self._before.expects))
        for owner in form.gone:
            owners.pop(owner, None)
        owners |= {(ns, kind, name): Traffic(*each) for ns, kind, name, *each in form.owners}
        return PodTraffic(owners, None, Traffic(*form.of_any))


def owners_of(expects: Expectation | None) -> Mapping[Owner, Traffic]:
    return expects._by_owner if isinstance(expects, PodTraffic) else {}


def traffic_of_any(expects: PodTraffic) -> Traffic:
    """Of a pod whose owner is not known."""
    return expects._of_any


def _is_same(values: FloatArray, before: FloatArray | None) -> bool:
    return before is not None and np.array_equal(values, before, equal_nan=True)


def _column(values: FloatArray) -> ColumnForm:
    if len(values) and _is_same(values, np.full(len(values), values[0])):
        return _number(float(values[0]))
    if np.isinf(values).any():
        return [_number(value) for value in values.tolist()]
    numbers: list[Number] = values.tolist()  # a NaN is written as null
    return numbers


def _number(value: float) -> Number:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _float(number: Any) -> float:
    if number is None:
        return math.nan
    if isinstance(number, str):
        if number not in _INFINITIES:
            raise RecordingError(f"{number!r} is no number; expected 1.5, null or Infinity")
        return _INFINITIES[number]
    return float(number)


def _floats(numbers: Mapping[str, Number]) -> dict[str, float]:
    return {name: _float(number) for name, number in numbers.items()}


def _derive(columns: dict[str, FloatArray], form: ReadingForm) -> None:
    found = {name: each for name, each in form.columns.items() if isinstance(each, Derived)}
    try:
        with_derived(columns, found)
    except (KeyError, ValueError, IndexError) as error:
        raise RecordingError(f"a column does not follow from others: {error}") from None


def _array(column: list[Number] | Number, count: int) -> FloatArray:
    if not isinstance(column, list):
        return np.full(count, _float(column))
    if len(column) != count:
        raise RecordingError(f"a column has {len(column)} numbers for {count} nodes")
    return np.array([_float(number) for number in column], np.float64)
