"""The doctor's table: for each node which series matched, by which label, and what it is worth.

Filled by checks, printed by the command."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from lowtide.doctor.evidence import Survey
from lowtide.doctor.findings import Code, Finding
from lowtide.doctor.naming import matched_by
from lowtide.doctor.times import is_stale, sample_ages
from lowtide.readings.capacity import CapacitySource
from lowtide.readings.reading import State
from lowtide.readings.rest import Rest, no_rest

ROWS_AT_ONCE: Final = 500

# What a reading that looks fresh is worth when one of these was found.
_IMPLAUSIBLE = (Code.POD_NETWORK,)


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is not known is None, or empty. `age_seconds` is that of the newest sample."""

    node: str
    instance: str = ""
    job: str = ""
    matched_by: str = ""
    devices: tuple[str, ...] = ()
    receive_bytes_per_second: float | None = None
    transmit_bytes_per_second: float | None = None
    capacity_bytes_per_second: float | None = None
    capacity_source: CapacitySource = CapacitySource.UNKNOWN
    age_seconds: float | None = None
    state: State = State.MISSING
    codes: tuple[Code, ...] = ()


def rows_of(
    survey: Survey, findings: Sequence[Finding], rest: Rest = no_rest
) -> tuple[NodeRow, ...]:
    """Nodes that need attention first, then by name."""
    codes_of: dict[str, dict[Code, None]] = {}
    for finding in findings:
        for name in finding.nodes:
            codes_of.setdefault(name, {})[finding.code] = None
    ages = sample_ages(survey)
    rows = []
    for number, one in enumerate(survey.identities):
        if number % ROWS_AT_ONCE == 0:
            rest()
        rows.append(_row(survey, number, ages[number], codes_of.get(one.name, {})))
    return tuple(sorted(rows, key=lambda row: (row.state is State.FRESH, row.node)))


def _row(survey: Survey, number: int, age_seconds: float | None, codes: Iterable[Code]) -> NodeRow:
    reading = survey.readings[number]
    found = tuple(codes)
    verdict = reading.state
    if is_stale(survey, number, age_seconds):
        verdict = State.STALE
    elif verdict is State.FRESH and any(code in _IMPLAUSIBLE for code in found):
        verdict = State.IMPLAUSIBLE
    series = survey.measured.get(number)
    has_links = bool(survey.devices[number])
    return NodeRow(
        node=survey.identities[number].name,
        instance="" if series is None else series.labels.get("instance", ""),
        job="" if series is None else series.labels.get("job", ""),
        matched_by="" if series is None else matched_by(survey, series, number),
        devices=survey.devices[number],
        receive_bytes_per_second=reading.receive,
        transmit_bytes_per_second=reading.transmit,
        capacity_bytes_per_second=reading.capacity_bytes_per_second if has_links else None,
        capacity_source=reading.capacity_source if has_links else CapacitySource.UNKNOWN,
        age_seconds=age_seconds,
        state=verdict,
        codes=found,
    )
