"""`lowtide explain NAMESPACE/POD`: why a pod went where it went, or why it waits."""

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.control import strip_control_codes
from rich.table import Table
from rich.text import Text

from lowtide.app.explain import (
    explanation_by_address,
    explanation_from_file,
    explanation_through_api_server,
)
from lowtide.cli.errors import told_in_one_sentence
from lowtide.kube.kubeconfig import load_access
from lowtide.readings.amounts import bandwidth_text
from lowtide.records.explaining import Explanation, WhyNot
from lowtide.records.record import DecisionRecord, NodeRecord

NODES_SHOWN = 10
FLIPS_SHOWN = 3
REMEDIES_SHOWN = 5
_WIDTH_WITHOUT_TERMINAL = 160


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option("--why-not", "node_name", metavar="NODE", help="Why it did not go to this node.")
@click.option(
    "--address",
    metavar="URL",
    help="Ask the process that serves there, such as https://127.0.0.1:10259.",
)
@click.option(
    "--decisions-file",
    type=click.Path(path_type=Path),
    help="Read what `lowtide scheduler --decisions-file` wrote instead of asking.",
)
@click.option(
    "--kubeconfig", help="Else ask Lowtide's pods through this cluster's API server, as this user."
)
@click.option(
    "--through", metavar="NAMESPACE/POD", help="Ask this pod. [default: those labelled lowtide]"
)
@click.option(
    "--port", type=int, help="Of that pod. [default: 10259 of a scheduler, 8001 of an extender]"
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def explain(
    pod: str,
    node_name: str | None,
    address: str | None,
    decisions_file: Path | None,
    kubeconfig: str | None,
    through: str | None,
    port: int | None,
    output: str,
) -> None:
    """Says why a pod went where it went, or why it waits and what would make it fit.

    Asks the scheduler or extender that decided, or a shadow: on a local port with --address, else
    its pods through the API server's proxy, with your own rights (get on pods/proxy). Or reads a
    file of decisions.
    """
    key = pod if "/" in pod else f"default/{pod}"
    if address is not None and decisions_file is not None:
        raise click.UsageError("--address and --decisions-file exclude each other")
    with told_in_one_sentence():
        if decisions_file is not None:
            found = explanation_from_file(decisions_file, key, node_name)
        elif address is not None:
            found = asyncio.run(explanation_by_address(address, key, node_name))
        else:
            access = load_access(
                kubeconfig=kubeconfig, master=None, environment=os.environ, home=Path.home()
            )
            found = asyncio.run(
                explanation_through_api_server(
                    access, key, node_name, through=through, port=port, wall_clock=time.time
                )
            )
        if output == "json":
            click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        else:
            console = Console()
            if not console.is_terminal:
                console = Console(width=_WIDTH_WITHOUT_TERMINAL)
            _Printed(console).explanation(found)


class _Printed:
    """An Explanation for people: the newest decision whole, earlier ones in a line each."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def explanation(self, found: Explanation) -> None:
        if found.waits is not None:
            self._say(f"{found.pod} waits: {found.waits}")
        if found.preempted_by is not None:
            by = found.preempted_by
            self._say(f"{found.pod} had to make room for {by.pod} at {_time(by.time)}")
        for number, record in enumerate(found.records):
            if number == 0:
                self._record(record)
            else:
                self._say(f"before: {_headline(record)}")
        for flip in found.flips_in_words[:FLIPS_SHOWN]:
            self._say(f"What would have changed it: {flip}.")
        for remedy in found.remedies[:REMEDIES_SHOWN]:
            self._say(f"What would make it fit: {remedy.in_words}.")
        if found.why_not is not None:
            self._why_not(found.why_not)

    def _record(self, record: DecisionRecord) -> None:
        self._say(_headline(record))
        if record.message is not None and not record.neutral:
            self._say(record.message)
        if record.preempts is not None:
            victims = ", ".join(record.preempts.victims)
            self._say(f"It takes the place of {victims} on {record.preempts.node}.")
        if record.reading is not None:
            self._say(_reading(record))
        if record.best and record.best[0].rules:
            self._console.print(_scores(record))
            left_out = record.feasible - min(len(record.best), NODES_SHOWN)
            if left_out > 0:
                self._say(f"and {left_out} more nodes that would have done")

    def _why_not(self, asked: WhyNot) -> None:
        when = "now" if asked.is_of_now else "then"
        if asked.refused_by:
            self._say(f"{asked.node} is refused {when} by {'; '.join(asked.refused_by)}.")
        elif asked.node == asked.chosen:
            self._say(f"{asked.node} is the node that is chosen {when}.")
        elif asked.total is None:
            self._say(f"{asked.node} is not refused {when}, and was not scored.")
        else:
            self._say(
                f"{asked.node} has {asked.total} points {when}, "
                f"{asked.chosen} {asked.chosen_total}; they differ by"
            )
            for row in asked.compared:
                if row.chosen != row.other:
                    self._say(f"  {row.rule}: {row.other} against {row.chosen}")

    def _say(self, line: str) -> None:
        text = strip_control_codes(line)  # what others called things
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def _headline(record: DecisionRecord) -> str:
    asked = f"asked to {record.asked}, " if record.asked else ""
    attempt = f"{asked}attempt {record.attempt}, {_time(record.time)}"
    if record.neutral:
        is_on = f", it is on {record.is_on}" if record.is_on else ""
        return f"{record.pod}: {record.message}{is_on} ({attempt}; {record.nodes} nodes)"
    if record.node is None:
        is_on = f", and is on {record.is_on}" if record.is_on else ""
        return f"{record.pod} fits nowhere{is_on} ({attempt}; {record.nodes} nodes)"
    words = f"{_place(record)} ({attempt}; {record.feasible} of {record.nodes} nodes"
    if record.by_nomination:
        words += "; the node was promised to it"
    elif record.runner_up is not None:
        words += f"; {record.margin} points ahead of {record.runner_up}"
    elif record.feasible == 1:
        words += "; no other node was left"
    return f"{words})"


def _place(record: DecisionRecord) -> str:
    """Where the pod goes; of another scheduler's pods where it is, and where it should be."""
    if record.asked:
        is_on = f", it is on {record.is_on}" if record.is_on else ""
        return f"{record.pod}: {record.node} is advised{is_on}"
    if record.is_on is None:
        return f"{record.pod} -> {record.node}"
    if record.is_on == record.node:
        return f"{record.pod} would be on {record.node}, and is"
    return f"{record.pod} would be on {record.node}, is on {record.is_on}"


def _reading(record: DecisionRecord) -> str:
    assert record.reading is not None
    reading = record.reading
    age = "" if reading.age_seconds is None else f", {reading.age_seconds:.0f} s old"
    words = f"Traffic over {reading.window_seconds:g} s{age}"
    if reading.expected_receive is None or reading.expected_transmit is None:
        return words
    return (
        f"{words}; the pod was expected to receive {bandwidth_text(reading.expected_receive)} "
        f"and to transmit {bandwidth_text(reading.expected_transmit)}"
    )


def _scores(record: DecisionRecord) -> Table:
    """Weighted points; rules that give every node the same are left out."""
    shown = record.best[:NODES_SHOWN]
    rules = [
        rule
        for rule in shown[0].rules
        if len({node.rules[rule].weighted for node in shown}) > 1 or len(shown) == 1
    ]
    table = Table(title="points by rule (what a rule gives every node alike is left out)")
    table.add_column("node", no_wrap=True)
    for rule in rules:
        table.add_column(rule, justify="right")
    table.add_column("total", justify="right")
    table.add_column("traffic")
    for node in shown:
        cells = (
            f"{node.node} *" if node.node == record.node else node.node,
            *(str(node.rules[rule].weighted) for rule in rules),
            str(node.total),
            _traffic(node),
        )
        table.add_row(*(Text(strip_control_codes(cell)) for cell in cells))
    return table


def _traffic(node: NodeRecord) -> str:
    measured = node.measured
    if measured is None:
        return ""
    if measured.state != "fresh" or measured.share is None or not measured.capacity:
        return measured.state
    words = f"{measured.share:.0%} of {bandwidth_text(measured.capacity)}"
    if measured.is_capacity_guessed:
        words += " (guessed)"
    added = max(measured.added_receive, measured.added_transmit)
    return f"{words} + {bandwidth_text(added)} just placed" if added >= 1 else words


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
