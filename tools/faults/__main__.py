"""`python -m faults`: tries all faults, or those named, and prints the figures as its last line."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faults import (
    inside_faults,
    leader_faults,
    measuring_faults,
    network_faults,
    process_faults,
)
from faults.arena import FULL, SHORT, Arena, arena_of


@dataclass(frozen=True, slots=True)
class Fault:
    """About how long it takes, in full and in short (0: only in full)."""

    name: str
    run: Callable[[Arena], None]
    full_seconds: int
    short_seconds: int


FAULTS = (
    Fault("scheduler-killed", process_faults.scheduler_killed_in_a_drain, 120, 25),
    Fault("scheduler-terminated", process_faults.scheduler_terminated_in_a_drain, 30, 12),
    Fault("scheduler-frozen", process_faults.scheduler_frozen, 50, 20),
    Fault("api-server-killed", process_faults.api_server_killed, 40, 25),
    Fault("api-server-frozen", process_faults.api_server_frozen, 60, 25),
    Fault("etcd-killed", process_faults.etcd_killed, 30, 20),
    Fault("etcd-frozen", process_faults.etcd_frozen, 60, 0),
    Fault("connections-reset", network_faults.connections_reset, 30, 15),
    Fault("latency", network_faults.latency_added, 40, 15),
    Fault("cut-off", network_faults.cut_off, 35, 15),
    Fault("silent", network_faults.silent, 35, 0),
    Fault("watches-expired", network_faults.watches_expired, 30, 20),
    Fault("prometheus", measuring_faults.prometheus_fails, 70, 25),
    Fault("metrics-server", measuring_faults.metrics_server_fails, 90, 50),
    Fault("clock", inside_faults.clock_jumps, 50, 20),
    Fault("disk", inside_faults.disk_full, 30, 15),
    Fault("plugin-fails", inside_faults.plugin_fails, 60, 25),
    Fault("plugin-hangs", inside_faults.plugin_hangs, 60, 0),
    Fault("leader-killed-2", partial(leader_faults.leader_killed, replicas=2), 40, 30),
    Fault("leader-killed-3", partial(leader_faults.leader_killed, replicas=3), 40, 0),
    Fault("leader-frozen-2", partial(leader_faults.leader_frozen, replicas=2), 50, 0),
    Fault("leader-frozen-3", partial(leader_faults.leader_frozen, replicas=3), 50, 40),
    Fault("leader-terminated-2", partial(leader_faults.leader_terminated, replicas=2), 20, 12),
    Fault("leader-terminated-3", partial(leader_faults.leader_terminated, replicas=3), 20, 0),
    Fault("upgraded", leader_faults.upgraded_and_rolled_back, 60, 30),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer and smaller, in four minutes")
    parser.add_argument("--only", action="append", metavar="FAULT", help="one of those it names")
    parser.add_argument("--logs", type=Path, help="a folder to keep all logs in")
    options = parser.parse_args(arguments)
    names = [fault.name for fault in FAULTS]
    for name in options.only or ():
        if name not in names:
            parser.error(f"no fault is called {name}; there are {', '.join(names)}")
    faults = [
        fault
        for fault in FAULTS
        if (fault.name in options.only if options.only else _seconds(fault, options.short))
    ]
    size = SHORT if options.short else FULL
    began_at = time.monotonic()
    with arena_of(size, say, folder=options.logs) as arena:
        for index, fault in enumerate(faults):
            left = sum(_seconds(each, options.short) for each in faults[index:])
            say(f"{index + 1} of {len(faults)}: {fault.name}; about {left} s are left")
            _try(fault, arena)
        figures = arena.finish()
    for violation in arena.auditor.violations[:50]:
        say(f"VIOLATION: {violation}")
    figures.seconds = time.monotonic() - began_at
    problems = list(figures.problems())
    for problem in problems:
        say(f"MISSED: {problem}")
    say(json.dumps(figures.as_json()))
    return 1 if problems else 0


def say(line: str) -> None:
    print(line, flush=True)


def _try(fault: Fault, arena: Arena) -> None:
    """One that goes wrong is told, and the others are tried all the same."""
    try:
        fault.run(arena)
    except Exception as error:
        arena.auditor.object_to(f"{fault.name}: {type(error).__name__}: {error}")


def _seconds(fault: Fault, is_short: bool) -> int:
    return fault.short_seconds if is_short else fault.full_seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
