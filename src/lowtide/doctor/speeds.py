"""How fast the links are, and where that was learned: speeds that exporters cannot tell."""

from collections.abc import Iterator

from lowtide.doctor import fixes
from lowtide.doctor.evidence import Survey
from lowtide.doctor.findings import Code, Finding, Severity
from lowtide.doctor.questions import METRICS, SPEED_METRIC
from lowtide.readings.capacity import CapacitySource
from lowtide.readings.links import HIGHEST_SPEED_BYTES_PER_SECOND
from lowtide.readings.request import SPEED

_GUESSED = (CapacitySource.SAME_TYPE, CapacitySource.CLUSTER)


def speeds(survey: Survey) -> Iterator[Finding]:
    """Nodes whose capacity is a guess, or is not known; one that is stated is as good as a speed.

    Where traffic is only compared between nodes, not knowing is no fault."""
    evidence = survey.evidence
    if not evidence.request.is_rate:
        return
    sources = {
        row: reading.capacity_source
        for row, reading in enumerate(survey.readings)
        if row in survey.measured
    }
    guessed = {row for row, source in sources.items() if source in _GUESSED}
    unknown = {row for row, source in sources.items() if source is CapacitySource.UNKNOWN}
    if guessed:
        yield Finding(
            code=Code.LINK_CAPACITY,
            text=f"{_why(survey, guessed)}; the busiest other node stands for a full link, which "
            "is a guess; the capacity should be stated",
            fix=fixes.stated_capacities([evidence.nodes[row] for row in sorted(guessed)]),
            nodes=survey.names(guessed),
            severity=Severity.NOTE,
        )
    if unknown:
        is_needed = evidence.compares_with_links
        yield Finding(
            code=Code.LINK_CAPACITY,
            text=f"{_why(survey, unknown)}, and no other node's traffic tells more, so the "
            "capacity is not known; it should be stated",
            fix=fixes.stated_capacities([evidence.nodes[row] for row in sorted(unknown)]),
            nodes=survey.names(unknown),
            severity=Severity.FAULT if is_needed else Severity.NOTE,
        )


def _why(survey: Survey, rows: set[int]) -> str:
    evidence = survey.evidence
    if SPEED in evidence.rejected:
        return f"the query for {SPEED_METRIC} has no answer"
    series = evidence.answer(SPEED)
    told = [
        one.value
        for one, candidates in zip(series, survey.matcher().candidates(series), strict=True)
        if len(candidates) == 1
        and candidates[0] in rows
        and one.labels.get("device", "") in survey.devices[candidates[0]]
        and not 0 < one.value < HIGHEST_SPEED_BYTES_PER_SECOND
    ]
    if told:
        return f"{SPEED_METRIC} is {told[0]:.0f} there, as virtual devices report"
    known = {one.labels.get("__name__", "") for one in evidence.answer(METRICS)}
    if METRICS in evidence.answers and SPEED_METRIC not in known:
        return f"Prometheus has no {SPEED_METRIC} (--collector.netclass gives it)"
    return f"there is no {SPEED_METRIC} of these links"
