"""Whether samples come often enough for the window, and are of now: scrape intervals, stale
samples, clocks that differ."""

import math
from collections.abc import Iterator
from typing import Final

from lowtide.doctor import fixes
from lowtide.doctor.coverage import is_selected
from lowtide.doctor.evidence import Evidence, Survey
from lowtide.doctor.findings import Code, Finding, Severity
from lowtide.readings.meter import SCRAPES_IN_WINDOW
from lowtide.readings.reading import State
from lowtide.readings.request import WINDOW_PLACEHOLDER, duration

# Below it clocks that are kept by NTP, and answers that travel, may differ.
CLOCKS_DIFFER_SECONDS: Final = 5.0
# In a window shorter than this many scrapes there is often no rate at all.
SCRAPES_FOR_A_RATE: Final = 2


def times(survey: Survey) -> Iterator[Finding]:
    yield from _window(survey)
    yield from _clocks(survey.evidence)
    yield from _stale(survey)


def sample_ages(survey: Survey) -> list[float | None]:
    """Of each node's newest sample, in seconds; None where there is none."""
    newest: dict[int, float] = {}
    for target in survey.targets:
        if len(target.rows) == 1:
            row = target.rows[0]
            newest[row] = max(newest.get(row, target.sampled_at), target.sampled_at)
    now = survey.evidence.now
    return [
        max(0.0, now - newest[row]) if row in newest else None
        for row in range(len(survey.identities))
    ]


def is_stale(survey: Survey, row: int, age_seconds: float | None) -> bool:
    """Also a node whose rate is still computed, from samples that have ended."""
    state = survey.readings[row].state
    if state is State.STALE:
        return True
    if state is not State.FRESH or survey.evidence.request.template or not survey.targets:
        return False
    interval_seconds = survey.evidence.scrape_interval_seconds or 0.0
    longest = max(survey.evidence.request.stale_after_seconds, 2 * interval_seconds)
    return age_seconds is None or age_seconds > longest


def _window(survey: Survey) -> Iterator[Finding]:
    evidence = survey.evidence
    request = evidence.request
    interval_seconds = evidence.scrape_interval_seconds
    if request.template and WINDOW_PLACEHOLDER not in request.template:
        return
    without_rate = _scraped_without_rate(survey)
    if interval_seconds is None:
        if without_rate:
            yield Finding(
                code=Code.SCRAPE_INTERVAL,
                text="counters of these nodes have no two samples within 15 minutes: scraping has "
                "just begun, or its interval is too long for any window",
                fix="# in prometheus.yml\nglobal:\n  scrape_interval: 15s",
                nodes=survey.names(without_rate),
            )
        return
    needed = math.ceil(SCRAPES_IN_WINDOW * interval_seconds)
    scrapes = 1 if request.measure == "sumOverTime" else SCRAPES_FOR_A_RATE
    is_too_short = request.window_seconds < scrapes * interval_seconds
    is_short = request.window_seconds < needed and request.measure != "sumOverTime"
    if not is_too_short and not is_short:
        return
    interval, window = f"{interval_seconds:.3g}s", duration(request.window_seconds)
    yield Finding(
        code=Code.SCRAPE_INTERVAL,
        text=f"targets are scraped every {interval}, and the window of {window} is shorter than "
        f"{scrapes if is_too_short else SCRAPES_IN_WINDOW} scrapes"
        + ("" if is_too_short else ", which is too few for a good rate")
        + _what_happens(evidence, is_too_short=is_too_short)
        + f"; it should be at least {duration(needed)}",
        fix=_window_fix(request.window_seconds, needed),
        nodes=survey.names(without_rate),
        severity=Severity.FAULT if is_too_short else Severity.NOTE,
    )


def _window_fix(window_seconds: int, needed_seconds: int) -> str:
    scrape_interval_seconds = window_seconds // SCRAPES_IN_WINDOW
    lines = [f"window: {duration(needed_seconds)}"]
    if scrape_interval_seconds:
        interval = duration(scrape_interval_seconds)
        lines.append(f"# or in prometheus.yml, for node_exporter: scrape_interval: {interval}")
    return fixes.args(*lines)


def _what_happens(evidence: Evidence, *, is_too_short: bool) -> str:
    widened_to = evidence.window_seconds
    if widened_to > evidence.request.window_seconds:
        return f"; Lowtide takes {duration(widened_to)} instead"
    return "; so there is often no value at all" if is_too_short else ""


def _scraped_without_rate(survey: Survey) -> set[int]:
    request = survey.evidence.request
    missing = {row for row, one in enumerate(survey.readings) if one.state is State.MISSING}
    return missing & {
        target.rows[0]
        for target in survey.targets
        if len(target.rows) == 1 and any(is_selected(request, each) for each in target.devices)
    }


def _clocks(evidence: Evidence) -> Iterator[Finding]:
    ahead_seconds = evidence.ahead_seconds
    if abs(ahead_seconds) < CLOCKS_DIFFER_SECONDS:
        return
    stale_after_seconds = evidence.request.stale_after_seconds
    makes_stale = -ahead_seconds >= stale_after_seconds
    direction = "ahead of" if ahead_seconds > 0 else "behind"
    effect = (
        f", so every reading looks older than {stale_after_seconds:g} s and none counts"
        if makes_stale
        else ""
    )
    yield Finding(
        code=Code.CLOCK_SKEW,
        text=f"Prometheus's clock is {abs(ahead_seconds):.0f} s {direction} the clock here{effect}",
        fix=fixes.SYNCHRONIZE_CLOCKS,
        severity=Severity.FAULT if makes_stale else Severity.NOTE,
    )


def _stale(survey: Survey) -> Iterator[Finding]:
    """A clock that is behind explains all of them."""
    evidence = survey.evidence
    if -evidence.ahead_seconds >= evidence.request.stale_after_seconds:
        return
    ages = sample_ages(survey)
    rows = {row for row, age_seconds in enumerate(ages) if is_stale(survey, row, age_seconds)}
    if not rows:
        return
    known = [age_seconds for row in rows if (age_seconds := ages[row]) is not None]
    oldest = f", the oldest {max(known):.0f} s ago" if known else ""
    yield Finding(
        code=Code.STALE_SAMPLES,
        text=f"the counters of these nodes were not scraped lately{oldest}: their targets are "
        "down, gone or slow",
        fix=fixes.pods_on(survey.names(rows)),
        nodes=survey.names(rows),
    )
