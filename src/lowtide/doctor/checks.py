"""All checks of one request, from what was asked and answered to an Examination.

App gathers the evidence and calls `examined`; nothing here asks anybody."""

from collections.abc import Iterator
from dataclasses import dataclass

from lowtide.doctor import fixes
from lowtide.doctor.coverage import coverage
from lowtide.doctor.evidence import Evidence, Survey, survey_of
from lowtide.doctor.findings import Code, Finding, Severity, worst_first
from lowtide.doctor.pod_network import pod_network
from lowtide.doctor.questions import LOOKED_AT, METRICS, POD_METRIC
from lowtide.doctor.reach import CODES
from lowtide.doctor.speeds import speeds
from lowtide.doctor.table import NodeRow, rows_of
from lowtide.doctor.times import times
from lowtide.readings.amounts import bandwidth_text
from lowtide.readings.reading import State
from lowtide.readings.request import POD_RECEIVE, TrafficRequest, directions
from lowtide.readings.rest import Rest, no_rest
from lowtide.telemetry.errors import Fault, PrometheusError


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found about one request."""

    window_seconds: int
    scrape_interval_seconds: float | None
    rows: tuple[NodeRow, ...]
    findings: tuple[Finding, ...]


def examined(evidence: Evidence, rest: Rest = no_rest) -> Examination:
    """Rests between its pieces: with thousands of nodes all of them take long."""
    survey = survey_of(evidence, rest)
    found = list(_rejected(evidence))
    for check in (coverage, pod_network, times, _implausible, speeds):
        rest()
        found += check(survey)
    found += _pod_traffic(evidence)
    findings = worst_first(found)
    return Examination(
        window_seconds=evidence.window_seconds,
        scrape_interval_seconds=evidence.scrape_interval_seconds,
        rows=rows_of(survey, findings, rest),
        findings=findings,
    )


def _rejected(evidence: Evidence) -> Iterator[Finding]:
    """Queries without an answer, though Prometheus answers others. What is measured matters; what
    is only asked beside it leaves something unknown. Of many that fail alike one is told."""
    measuring = [
        evidence.rejected[name]
        for name in directions(evidence.request)
        if name in evidence.rejected
    ]
    for fault, error in {each.fault: each for each in reversed(measuring)}.items():
        yield Finding(code=CODES[fault], text=str(error), fix=_fix_of_query(evidence, error))
    if measuring:
        return
    beside: dict[Fault, dict[str, PrometheusError]] = {}
    for name, error in evidence.rejected.items():
        beside.setdefault(error.fault, {})[LOOKED_AT.get(name, name)] = error
    for fault, errors in beside.items():
        first = next(iter(errors.values()))
        yield Finding(
            code=CODES[fault],
            text=f"{', '.join(errors)} could not be checked: {first}",
            # Such a query is the doctor's own: no setting makes it one that is answered.
            fix="" if fault is Fault.QUERY else _fix_of_query(evidence, first),
            severity=Severity.NOTE,
            unchecked=tuple(errors),
        )


def _fix_of_query(evidence: Evidence, error: PrometheusError) -> str:
    request = evidence.request
    if error.fault is not Fault.QUERY:
        return fixes.args("prometheus:", f"  timeout: {3 * request.access.timeout_seconds:g}s")
    if request.template:
        return fixes.args(fixes.OWN_QUERY)
    return fixes.args("devices: []  # all but virtual ones; or an expression that RE2 takes")


def _implausible(survey: Survey) -> Iterator[Finding]:
    rows = {
        row
        for row, reading in enumerate(survey.readings)
        if row in survey.measured and reading.state is State.IMPLAUSIBLE
    }
    if rows:
        yield Finding(
            code=Code.IMPLAUSIBLE_VALUE,
            text="the traffic of these nodes is negative, infinite or not a number; it should be "
            "a number of bytes from 0 up",
            fix=fixes.args("measure: rate"),
            nodes=survey.names(rows),
        )


def _pod_traffic(evidence: Evidence) -> Iterator[Finding]:
    if POD_RECEIVE not in evidence.answers or evidence.answer(POD_RECEIVE):
        return
    known = {one.labels.get("__name__", "") for one in evidence.answer(METRICS)}
    is_scraped = POD_METRIC in known
    problem = (
        f"{POD_METRIC} has no rate by pod: its series lack the label `pod`, or are scraped too "
        "seldom for the window"
        if is_scraped
        else f"Prometheus has no {POD_METRIC} (cAdvisor is not scraped)"
    )
    yield Finding(
        code=Code.NO_POD_TRAFFIC,
        text=f"{problem}, so what pods carry cannot be learned; each new pod is taken to carry "
        f"{_taken_for_granted(evidence.request)} until it is measured",
        fix=fixes.args("podTraffic: 100M  # bits per second of an ordinary pod")
        if is_scraped
        else fixes.SCRAPE_PODS,
        severity=Severity.NOTE,
    )


def _taken_for_granted(request: TrafficRequest) -> str:
    if request.pod_bytes_per_second:
        return bandwidth_text(request.pod_bytes_per_second)
    return f"{100 * request.pod_share:.3g} % of a link"
