"""Why nodes have no usable reading: each such node is put down to one cause.

The causes are tried from the whole to the single: a metric that nobody has is told once, not
once for every node."""

import re
from collections.abc import Iterator
from typing import Final

from lowtide.doctor import fixes
from lowtide.doctor.evidence import MATCH_LABELS, Survey, Target
from lowtide.doctor.findings import Code, Finding, Severity
from lowtide.doctor.naming import Naming, naming_of, other_setting
from lowtide.doctor.questions import (
    DEVICE_NAMES,
    DOWN,
    EXPORTERS,
    JOBS,
    LOOPBACK,
    METRICS,
    counted_direction,
    traffic_metric,
)
from lowtide.readings.reading import State
from lowtide.readings.request import (
    RECEIVE,
    TRANSMIT,
    UNAME,
    VALUE,
    VIRTUAL_DEVICES,
    TrafficRequest,
    directions,
    is_exact,
    traffic_queries,
)
from lowtide.readings.series import Series

_SHOWN_LABELS: Final = ("node", "kubernetes_node", "nodename", "instance", "job")
_DEVICES_NAMED: Final = 5


def coverage(survey: Survey) -> Iterator[Finding]:
    """Only of what was answered: a query that was rejected is a finding of its own."""
    evidence = survey.evidence
    if any(name in evidence.rejected for name in directions(evidence.request)):
        return
    yield from _ambiguous(survey)
    missing = {row for row, reading in enumerate(survey.readings) if reading.state is State.MISSING}
    if not missing:
        return
    if evidence.request.template:
        yield from _own_query(survey, missing)
        return
    absent = list(_absent_metrics(survey))
    if absent:
        for finding, rows in _down(survey, missing):
            missing -= rows
            yield finding
        if missing:
            yield _metric_missing(survey, absent, missing)
        return
    for cause in (_wrong_devices, _in_pods_unmatched, _wrong_labels, _down, _without_collector):
        for finding, rows in cause(survey, missing):
            missing -= rows
            yield finding
    # A target that is known but has no rate is a matter of time: the checks of times tell it.
    missing -= {row for target in survey.targets if len(target.rows) == 1 for row in target.rows}
    if missing:
        yield _exporter_missing(survey, missing)


FoundOnRows = Iterator[tuple[Finding, set[int]]]


def _own_query(survey: Survey, missing: set[int]) -> Iterator[Finding]:
    evidence = survey.evidence
    promql = traffic_queries(evidence.request, evidence.request.window_seconds)[VALUE]
    if not evidence.answer(VALUE):
        yield Finding(
            code=Code.QUERY_EMPTY,
            text=f"the query of the args gives no series: {promql}; "
            "it should give one value per node",
            fix=fixes.args(fixes.OWN_QUERY),
            nodes=survey.names(missing),
        )
        return
    for finding, rows in _wrong_labels(survey, missing):
        missing -= rows
        yield finding
    if missing:
        yield Finding(
            code=Code.QUERY_EMPTY,
            text="the query of the args gives no value for some nodes",
            fix=fixes.pods_on(survey.names(missing)),
            nodes=survey.names(missing),
        )


def _ambiguous(survey: Survey) -> Iterator[Finding]:
    """Two nodes share what the labels say. Where a node has a series of its own besides, its
    reading counts, and this is a note."""
    series = [
        one for name in directions(survey.evidence.request) for one in survey.evidence.answer(name)
    ]
    claims = [
        (one, rows)
        for one, rows in zip(series, survey.matcher().candidates(series), strict=True)
        if len(rows) > 1
    ]
    if not claims:
        return
    claimed = {row for _, rows in claims for row in rows}
    is_lost = any(survey.readings[row].state is State.IMPLAUSIBLE for row in claimed)
    one, rows = claims[0]
    names = " and ".join(survey.names(rows))
    setting = _clear_setting(survey, claimed, series)
    yield Finding(
        code=Code.AMBIGUOUS_MATCH,
        text=f"the series with {_shown(one, survey)} may belong to {names}, which share a name or "
        "an address, or which its labels name both; it counts for neither",
        fix=fixes.args(f"nodeLabel: {setting}") if setting else fixes.NODE_LABEL_RELABELLING,
        nodes=survey.names(claimed),
        severity=Severity.FAULT if is_lost else Severity.NOTE,
    )


def _clear_setting(survey: Survey, claimed: set[int], series: list[Series]) -> str:
    """The one label by which every node that is claimed has a series and none is shared."""
    for label in MATCH_LABELS:
        candidates = survey.matcher(label).candidates(series)
        if any(len(rows) > 1 for rows in candidates):
            continue
        if claimed <= {row for rows in candidates for row in rows}:
            return label
    return ""


def _absent_metrics(survey: Survey) -> Iterator[str]:
    """Of the counters that are asked for; nothing where that could not be found out."""
    evidence = survey.evidence
    if METRICS not in evidence.answers:
        return
    known = {one.labels.get("__name__", "") for one in evidence.answer(METRICS)}
    for direction in directions(evidence.request):
        if direction in (RECEIVE, TRANSMIT) and traffic_metric(direction) not in known:
            yield traffic_metric(direction)


def _metric_missing(survey: Survey, absent: list[str], missing: set[int]) -> Finding:
    evidence = survey.evidence
    exporters = [*evidence.answer(EXPORTERS), *evidence.answer(UNAME)]
    jobs = ", ".join(sorted(one.labels.get("job", "") for one in evidence.answer(JOBS)))
    is_known = bool(exporters) or bool(survey.targets)
    if is_known:
        text = (
            f"Prometheus has no series of {' and '.join(absent)}, although node_exporter is "
            "scraped: its collector netdev is off, or the series are dropped"
        )
    else:
        scraped = f"it scrapes the jobs {jobs}" if jobs else "it scrapes nothing"
        text = (
            f"Prometheus has no series of {' and '.join(absent)}, nor any other of node_exporter: "
            f"{scraped}"
        )
    return Finding(
        code=Code.METRIC_MISSING,
        text=text,
        fix=fixes.NETWORK_COLLECTORS if is_known else fixes.SCRAPE_EXPORTERS,
        nodes=survey.names(missing),
    )


def _wrong_devices(survey: Survey, missing: set[int]) -> FoundOnRows:
    request = survey.evidence.request
    seen: dict[int, set[str]] = {}
    for target in survey.targets:
        if len(target.rows) == 1:
            seen.setdefault(target.rows[0], set()).update(target.devices)
    rows = {
        row
        for row in missing & seen.keys()
        if not any(is_selected(request, device) for device in seen[row])
    }
    if not rows:
        return
    devices = sorted(set().union(*(seen[row] for row in rows)) - {LOOPBACK})
    asked = ", ".join(request.devices) or "all but virtual ones"
    if not devices:
        common = survey.evidence.answer(DEVICE_NAMES)
        devices = sorted({one.labels.get("device", "") for one in common} - {LOOPBACK})
    shown = ", ".join(devices[:_DEVICES_NAMED]) or "lo alone"
    finding = Finding(
        code=Code.DEVICE_MISMATCH,
        text=f"the devices asked for ({asked}) are on none of these nodes, which have {shown}",
        fix=fixes.kept_devices(devices[:_DEVICES_NAMED] or ["eth.*", "en.*"]),
        nodes=survey.names(rows),
    )
    yield finding, rows


def is_selected(request: TrafficRequest, device: str) -> bool:
    """Whether the request's device matcher takes it, as far as Python's expressions tell."""
    if not request.devices:
        return re.fullmatch("|".join(VIRTUAL_DEVICES), device) is None
    return any(
        device == each if is_exact(each) else re.fullmatch(each, device) is not None
        for each in request.devices
    )


def _in_pods_unmatched(survey: Survey, missing: set[int]) -> FoundOnRows:
    """Exporters at a pod's address, which no label brings to a node."""
    rows_by_name = {one.name: row for row, one in enumerate(survey.identities)}
    rows = {
        rows_by_name[target.pod.node_name]
        for target in survey.targets
        if not target.rows and _is_in_pod(target) and target.pod is not None
        if target.pod.node_name in rows_by_name
    } & missing
    if rows:
        yield pod_network_finding(survey, rows), rows


def _is_in_pod(target: Target) -> bool:
    return target.pod is not None and not target.pod.is_on_host_network


def pod_network_finding(survey: Survey, rows: set[int]) -> Finding:
    return Finding(
        code=Code.POD_NETWORK,
        text="node_exporter runs in a pod's network there and counts the pod's traffic, "
        "not the node's; it should run in the host's",
        fix=fixes.HOST_NETWORK,
        nodes=survey.names(rows),
    )


def _wrong_labels(survey: Survey, missing: set[int]) -> FoundOnRows:
    """Series are there, and their labels lead to no node."""
    series = survey.unmatched
    if not series:
        return
    other = other_setting(survey, missing)
    if other is not None:
        setting, rows = other
        given = survey.evidence.request.match_label
        yield (
            _label_finding(
                survey,
                rows,
                f"nodes are looked for by nodeLabel: {given}, and the series that belong to them "
                f"have {_shown(series[0], survey)}",
                fixes.args(f"nodeLabel: {setting}"),
            ),
            rows,
        )
        missing = missing - rows
    naming = naming_of(series, survey.identities, missing)
    if naming is not None:
        rows = missing & naming.rows
        yield _label_finding(survey, rows, _naming_text(naming), naming.fix), rows
        missing = missing - rows
    is_none_matched = not survey.measured and other is None and naming is None
    if missing and is_none_matched:
        yield (
            _label_finding(
                survey,
                missing,
                f"no series belongs to any node: they have {_shown(series[0], survey)} "
                f"and the like, while the nodes are called {_nodes_shown(survey, missing)}",
                fixes.NODE_LABEL_RELABELLING,
            ),
            set(missing),
        )


def _label_finding(survey: Survey, rows: set[int], text: str, fix: str) -> Finding:
    return Finding(code=Code.LABEL_MISMATCH, text=text, fix=fix, nodes=survey.names(rows))


def _naming_text(naming: Naming) -> str:
    return (
        f'the series name their nodes by {naming.label}="{naming.example}", which Lowtide does not '
        "go by; the label `node` should hold the node's name"
    )


def _nodes_shown(survey: Survey, rows: set[int]) -> str:
    shown = []
    for row in sorted(rows)[:2]:
        one = survey.identities[row]
        at = f" ({', '.join(one.addresses[:2])})" if one.addresses else ""
        shown.append(f"{one.name}{at}")
    return ", ".join(shown)


def _shown(one: Series, survey: Survey) -> str:
    """The labels that matter, with the nodename that node_uname_info adds."""
    labels = {name: one.labels[name] for name in _SHOWN_LABELS if name in one.labels}
    if "nodename" not in labels:
        for each in survey.evidence.answer(UNAME):
            if each.labels.get("instance") == one.labels.get("instance"):
                labels["nodename"] = each.labels.get("nodename", "")
                break
    return ", ".join(f'{name}="{value}"' for name, value in labels.items()) or "no such label"


def _down(survey: Survey, missing: set[int]) -> FoundOnRows:
    evidence = survey.evidence
    of_exporters = [*evidence.answer(EXPORTERS), *evidence.answer(UNAME)]
    jobs = {target.labels.get("job", "") for target in survey.targets}
    jobs |= {one.labels.get("job", "") for one in of_exporters}
    down = [
        one
        for one in evidence.answer(DOWN)
        if (job := one.labels.get("job", "")) in jobs or (not jobs and "node" in job.lower())
    ]
    # Without its exporter a node is not named by node_uname_info: the address has to do.
    rows = missing & (survey.rows_of(down) | survey.rows_of(down, "instance"))
    if not rows:
        return
    yield (
        Finding(
            code=Code.TARGET_DOWN,
            text="Prometheus cannot scrape node_exporter there (up is 0); it should run and be "
            "reachable from Prometheus",
            fix=fixes.pods_on(survey.names(rows)),
            nodes=survey.names(rows),
        ),
        rows,
    )


def _without_collector(survey: Survey, missing: set[int]) -> FoundOnRows:
    evidence = survey.evidence
    exporters = [*evidence.answer(EXPORTERS), *evidence.answer(UNAME)]
    known = {row for target in survey.targets for row in target.rows}
    rows = (missing - known) & survey.rows_of(exporters)
    if not rows:
        return
    metric = traffic_metric(counted_direction(evidence.request))
    yield (
        Finding(
            code=Code.METRIC_MISSING,
            text=f"node_exporter is scraped there but gives no {metric}: its collector netdev is "
            "off, or the series are dropped",
            fix=fixes.NETWORK_COLLECTORS,
            nodes=survey.names(rows),
        ),
        rows,
    )


def _exporter_missing(survey: Survey, missing: set[int]) -> Finding:
    tainted = sum(1 for row in missing if survey.evidence.nodes[row].spec.taints)
    hints = []
    if tainted:
        hints.append(f"; {tainted} of them have taints, which its DaemonSet may not tolerate")
    if survey.unmatched:
        hints.append(f"; the series with {_shown(survey.unmatched[0], survey)} is of no node")
    return Finding(
        code=Code.EXPORTER_MISSING,
        text="Prometheus has no series of these nodes and no target there: node_exporter does not "
        f"run or is not scraped{''.join(hints)}",
        fix=fixes.EXPORTER_EVERYWHERE,
        nodes=survey.names(missing),
    )
