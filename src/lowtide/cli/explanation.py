"""An Explanation as `lowtide explain` prints it for people."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.control import strip_control_codes
from rich.table import Table
from rich.text import Text

from lowtide.objects.extender import MOST_PRIORITY
from lowtide.readings.amounts import bandwidth_text
from lowtide.records.explaining import Explanation, WhyNot
from lowtide.records.record import (
    TURNS,
    DecisionRecord,
    NodeRecord,
    lead_in_words,
    priorities_in_words,
)

NODES_SHOWN = 10
FLIPS_SHOWN = 3
REMEDIES_SHOWN = 5


class Printed:
    """An Explanation for people: the newest decision whole, earlier ones in a line each."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def explanation(self, found: Explanation) -> None:
        if found.waiting_for is not None:
            self._say(f"{found.pod} waits: {found.waiting_for}")
        if found.preempted_by is not None:
            by = found.preempted_by
            self._say(f"{found.pod} had to make room for {by.pod} at {_time(by.time)}")
        for number, record in enumerate(found.records):
            if number == 0:
                self._record(record)
            else:
                self._say(f"before: {_headline(record)}")
        for flip in found.change_messages[:FLIPS_SHOWN]:
            self._say(f"What would have changed it: {flip}.")
        for remedy in found.remedies[:REMEDIES_SHOWN]:
            self._say(f"What would make it fit: {remedy.message}.")
        for hint in found.hints:
            self._say(f"What can be done: {hint}.")
        if found.no_remedies_reason is not None:
            words = found.no_remedies_reason
            self._say(f"{words[0].upper()}{words[1:]} (no --decisions-file, or --address).")
        if found.why_not is not None:
            self._why_not(found.why_not, found.records[0].extender_verb if found.records else "")

    def _record(self, record: DecisionRecord) -> None:
        self._say(_headline(record))
        if record.message is not None and not record.neutral_reason:
            self._say(record.message)
        if record.preemption is not None:
            victims = ", ".join(record.preemption.victims)
            self._say(f"It takes the place of {victims} on {record.preemption.node}.")
        if record.reading is not None:
            self._say(_reading(record))
        if record.best and record.best[0].scores:
            self._scores(record)
            left_out = record.feasible - min(len(record.best), NODES_SHOWN)
            if left_out > 0:
                self._say(f"and {left_out} more nodes that would have done")

    def _scores(self, record: DecisionRecord) -> None:
        """Plugins that tell no nodes apart have no column; a line below says what they gave."""
        shown = record.best[:NODES_SHOWN]
        columns, alike, nothing = [], [], []
        for plugin in shown[0].scores:
            points = {node.scores[plugin].weighted for node in shown}
            if points == {0}:
                nothing.append(plugin)
            elif len(points) > 1 or len(shown) == 1:
                columns.append(plugin)
            else:
                alike.append(f"{plugin} {points.pop()}")
        self._console.print(_score_table(record, shown, columns))
        for words, plugins in (("the same", alike), ("0", nothing)):
            if plugins:
                self._say(f"{words} for all of these nodes: {', '.join(plugins)}")
        if record.priorities is not None:
            self._say(priorities_in_words(record))

    def _why_not(self, asked: WhyNot, asked_to: str) -> None:
        """Among equal nodes it is Lowtide's turn to choose, or of who asked it to do something."""
        when = "now" if asked.is_current else "then"
        if asked.all_rejected is not None:
            self._say(
                f"{asked.node}, if it was among them: {asked.all_rejected.rstrip('.')}. "
                "The record does not tell rejected nodes apart."
            )
        elif asked.rejections:
            self._say(f"{asked.node} is rejected {when} by {'; '.join(asked.rejections)}.")
        elif asked.node == asked.chosen:
            self._say(f"{asked.node} is the node that is chosen {when}.")
        elif asked.total is None:
            self._say(f"{asked.node} is not rejected {when}, and was not scored.")
        else:
            self._compared(asked, when, "" if asked_to else f": {TURNS}")

    def _compared(self, asked: WhyNot, when: str, if_equal: str) -> None:
        differing = [row for row in asked.comparison if row.chosen != row.other]
        if asked.total == asked.chosen_total:
            words = f"as many as {asked.chosen}{if_equal}"
        else:
            words = f"{asked.chosen} {asked.chosen_total}"
        end = "; they differ by" if differing else "."
        self._say(f"{asked.node} has {asked.total} points {when}, {words}{end}")
        for row in differing:
            self._say(f"  {row.plugin}: {row.other} against {row.chosen}")

    def _say(self, line: str) -> None:
        text = strip_control_codes(line)  # what others called things
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def _headline(record: DecisionRecord) -> str:
    asked = f"asked to {record.extender_verb}, " if record.extender_verb else ""
    attempt = f"{asked}attempt {record.attempt}, {_time(record.time)}"
    if record.neutral_reason:
        is_on = f", it is on {record.actual_node}" if record.actual_node else ""
        return f"{record.pod}: {record.message}{is_on} ({attempt}; {record.nodes} nodes)"
    if record.node is None:
        is_on = f", and is on {record.actual_node}" if record.actual_node else ""
        return f"{record.pod} fits nowhere{is_on} ({attempt}; {record.nodes} nodes)"
    words = f"{_place(record)} ({attempt}; {record.feasible} of {record.nodes} nodes"
    if record.by_nomination:
        words += "; the node was promised to it"
    elif lead := lead_in_words(record):
        words += f"; {lead}"
    elif record.feasible == 1:
        words += "; no other node was left"
    return f"{words})"


def _place(record: DecisionRecord) -> str:
    """Where the pod goes; of another scheduler's pods where it is, and where it should be."""
    if record.extender_verb:
        is_on = f", it is on {record.actual_node}" if record.actual_node else ""
        return f"{record.pod}: {record.node} is advised{is_on}"
    if record.actual_node is None:
        return f"{record.pod} -> {record.node}"
    if record.actual_node == record.node:
        return f"{record.pod} would be on {record.node}, and is"
    return f"{record.pod} would be on {record.node}, is on {record.actual_node}"


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


def _score_table(
    record: DecisionRecord, shown: Sequence[NodeRecord], plugins: Sequence[str]
) -> Table:
    """Weighted points."""
    table = Table(title="points by plugin")
    table.add_column("node", no_wrap=True)
    for plugin in plugins:
        table.add_column(plugin, justify="right")
    table.add_column("total", justify="right")
    told = record.priorities
    if told is not None:
        table.add_column("answered", justify="right")
    table.add_column("traffic")
    for node in shown:
        cells = (
            f"{node.node} *" if node.node == record.node else node.node,
            *(str(node.scores[plugin].weighted) for plugin in plugins),
            str(node.total),
            *(() if told is None else (f"{told.by_node[node.node]} of {MOST_PRIORITY}",)),
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
