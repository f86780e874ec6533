"""`lowtide doctor`: runs the checks of the metric path, and prints what they found."""

import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from lowtide.app.clocks import steady_clock
from lowtide.app.doctor import Doctor, DoctorParts, Report
from lowtide.app.examining import Examined
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry, read_config
from lowtide.cli.cluster_options import cluster_options
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.logging_options import start_logging
from lowtide.cli.running import run
from lowtide.config.load import LoadedConfig
from lowtide.doctor.findings import Finding, Severity
from lowtide.doctor.table import NodeRow
from lowtide.framework.plugin import Binder
from lowtide.framework.profile import Profile
from lowtide.kube.kubeconfig import Access, KubeconfigError, load_access
from lowtide.readings.amounts import bandwidth_text
from lowtide.readings.reading import State
from lowtide.readings.request import duration

ROWS_SHOWN: Final = 100
NODES_NAMED: Final = 5
_WIDTH_WITHOUT_TERMINAL: Final = 120


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="The scheduler's KubeSchedulerConfiguration.",
)
@cluster_options
@click.option(
    "--prometheus",
    "prometheus_address",
    metavar="URL",
    help="Ask this Prometheus; with --config, instead of those that the file names.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def doctor(
    plugins: dict[str, type[Any]],
    config_file: Path | None,
    kubeconfig: str | None,
    master: str | None,
    prometheus_address: str | None,
    output: str,
) -> None:
    """Checks that metrics reach the scheduler.

    Shows how to fix what is missing.

    From the exporters to the scores: prints for each node which series matched by which label, its
    devices, link speed, age and state; then each fault, with lines to paste that fix it. Reads
    only; permission to list nodes is enough. Exit status 0: no fault was found.
    """
    start_logging(0, "text")
    with reported_in_one_sentence():
        loaded = read_config(config_file, None if config_file else prometheus_address)
        built = make_registry(plugins).build(loaded, {Binder: NoBinder()})
        for warning in (*loaded.warnings, *built.warnings):
            click.echo(f"warning: {warning}", err=True)
        profiles: dict[str, Profile] = built.profiles
        access = _access(loaded, kubeconfig=kubeconfig, master=master)
        report = _run(access, profiles, prometheus_address if config_file else None)
        if output == "json":
            click.echo(json.dumps(_as_json(report), indent=2))
        else:
            _print(report)
    sys.exit(0 if report.is_well else 1)


def _access(
    loaded: LoadedConfig, *, kubeconfig: str | None, master: str | None
) -> Access | KubeconfigError:
    """The file's own kubeconfig only where it exists: it is a path on the scheduler's machine."""
    named = loaded.config.client_connection.kubeconfig
    try:
        return load_access(
            kubeconfig=kubeconfig or (named if named and Path(named).exists() else None),
            master=master,
            environment=os.environ,
            home=Path.home(),
        )
    except KubeconfigError as error:
        return error


def _run(
    access: Access | KubeconfigError, profiles: dict[str, Profile], prometheus_address: str | None
) -> Report:
    console = Console(stderr=True)
    status = console.status("Starting") if console.is_terminal else None
    with status or nullcontext():
        parts = DoctorParts(
            access=access,
            profiles=profiles,
            clock=steady_clock(),
            wall_clock=time.time,
            tell=lambda text: None if status is None else status.update(f"{text} ..."),
            prometheus_address=prometheus_address,
        )
        return run(Doctor(parts).run())


def _print(report: Report) -> None:
    # Brackets and colons in names and snippets are meant as they stand.
    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(_cluster(report), soft_wrap=True)
    for one in report.requests:
        _print_request(console, one)
    for finding in report.findings:
        _print_finding(console, finding)
    console.print()
    console.print(verdict_of(report), style="bold", soft_wrap=True)


def _cluster(report: Report) -> str:
    if not report.server:
        return "No cluster"
    if not report.is_reached:
        return f"Cluster {report.server}: not reached"
    if report.node_count is None:
        return f"Cluster {report.server}: its nodes could not be listed"
    return f"Cluster {report.server}: {_counted(report.node_count, 'node')}"


def verdict_of(report: Report) -> str:
    """What was not looked at is not well: nobody knows."""
    faults = sum(1 for each in report.findings if each.severity is Severity.FAULT)
    notes = sum(1 for each in report.findings if not each.unchecked) - faults
    words = "All is well" if not report.unchecked else "No fault found"
    parts = [words if report.is_well else f"{_counted(faults, 'fault')} to fix"]
    if notes:
        parts.append(_counted(notes, "note"))
    if report.unchecked:
        checks = _counted(len(report.unchecked), "check")
        parts.append(f"{checks} could not be made: {', '.join(report.unchecked)}")
    return "; ".join(parts)


def _print_request(console: Console, one: Examined) -> None:
    console.print(f"NetworkTraffic of {', '.join(one.scheduler_names)}, from {one.prometheus}")
    if one.examination is None:
        return
    interval = one.examination.scrape_interval_seconds
    scraped = "scrape interval not known" if interval is None else f"scraped every {interval:.3g}s"
    window = duration(one.examination.window_seconds)
    console.print(f"Window {window}, {scraped}")
    table = Table()
    for title in ("node", "series", "matched by", "devices", "link", "age", "verdict"):
        table.add_column(title, overflow="fold")
    rows = one.examination.rows
    for row in rows[:ROWS_SHOWN]:
        table.add_row(
            row.node,
            row.instance,
            row.matched_by,
            ", ".join(row.devices),
            _link(row),
            "" if row.age_seconds is None else f"{row.age_seconds:.0f}s",
            _verdict(row),
        )
    console.print(table)
    if len(rows) > ROWS_SHOWN:
        rest = rows[ROWS_SHOWN:]
        fresh = sum(1 for row in rest if row.state is State.FRESH)
        console.print(f"… and {len(rest)} nodes more, {fresh} of them fresh (--output json: all)")


def _link(row: NodeRow) -> str:
    if row.capacity_bytes_per_second is None:
        return "unknown" if row.devices else ""
    return f"{bandwidth_text(row.capacity_bytes_per_second)} ({row.capacity_source.value})"


def _verdict(row: NodeRow) -> str:
    codes = ", ".join(code.value for code in row.codes)
    return f"{row.state.value}: {codes}" if codes else row.state.value


def _print_finding(console: Console, finding: Finding) -> None:
    is_fault = finding.severity is Severity.FAULT
    console.print()
    console.print(
        f"{finding.severity.value.upper()} {finding.code.value}: {finding.text}",
        style="bold red" if is_fault else "bold",
        soft_wrap=True,
    )
    if finding.nodes:
        named = ", ".join(finding.nodes[:NODES_NAMED])
        more = len(finding.nodes) - NODES_NAMED
        rest = f" and {more} more" if more > 0 else ""
        console.print(f"  {_counted(len(finding.nodes), 'node')}: {named}{rest}", soft_wrap=True)
    for line in finding.fix.splitlines():
        console.print(f"    {line}", style="green", soft_wrap=True)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "ok": report.is_well,
        "server": report.server,
        "requests": [_request_as_json(one) for one in report.requests],
        "findings": msgspec.to_builtins(report.findings),
    }


def _request_as_json(one: Examined) -> dict[str, Any]:
    found = one.examination
    return {
        "schedulerNames": list(one.scheduler_names),
        "prometheus": one.prometheus,
        "windowSeconds": None if found is None else found.window_seconds,
        "scrapeIntervalSeconds": None if found is None else found.scrape_interval_seconds,
        "nodes": [] if found is None else msgspec.to_builtins(found.rows),
    }
