"""`python -m two_schedulers`: prints what each round did, and the figures as its last line."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from two_schedulers.conflicts import Bound, conflicts, delays, percentile, seen_at
from two_schedulers.contest import Contest

LOWTIDE_USER = "lowtide"
WITHDRAWN = "has changed meanwhile"  # a binding that was not sent, in the scheduler's log


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="two_schedulers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=250)
    parser.add_argument("--room", type=int, default=4, help="pods that fit on a node")
    parser.add_argument("--pods", type=int, default=1000, help="of a round, half for each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--qps", type=int, default=50, help="of kube-scheduler, whose default it is"
    )
    parser.add_argument("--lowtide-qps", type=int, default=50)
    parser.add_argument("--delays", action="store_true", help="measure these too, with -v=2")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="lowtide-two-"))
    flags = ("-v=2",) if options.delays else ()
    try:
        qps = options.qps, options.lowtide_qps
        with Contest(
            folder, nodes=options.nodes, room=options.room, qps=qps, flags=flags
        ) as contest:
            rounds = []
            for number in range(options.rounds):
                bindings = contest.round(options.pods)
                rounds.append(told(contest, bindings, options.room))
                say(f"round {number + 1} of {options.rounds}: {rounds[-1]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(json.dumps({"pods": options.pods, "room": options.room, **summary(rounds)}))
    return 0


def told(contest: Contest, bindings: list[Bound], room: int) -> dict[str, Any]:
    """Delays are those of the other's bindings, at Lowtide and at who only looks on."""
    found = conflicts(bindings, room)
    first, last = (pick(each.at for each in bindings) for pick in (min, max))
    of_other = [each for each in bindings if each.user != LOWTIDE_USER]
    log = contest.lowtide.log()
    by_lowtide = delays(of_other, seen_at(log, time.gmtime().tm_year))
    return {
        "bound": found.bound,
        "overcommitted_nodes": found.overcommitted_nodes,
        "excess_by_lowtide": found.excess[LOWTIDE_USER],
        "excess_by_other": found.excess.total() - found.excess[LOWTIDE_USER],
        "withdrawn_so_far": log.count(WITHDRAWN),
        "seconds": round(last - first, 2),
        "onlooker_delay_ms": _in_ms(delays(of_other, contest.onlooker.seen_at)),
        **({"lowtide_delay_ms": _in_ms(by_lowtide)} if by_lowtide else {}),
    }


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the rounds; of delays, the last round's."""
    names = ("bound", "overcommitted_nodes", "excess_by_lowtide", "excess_by_other", "seconds")
    figures: dict[str, Any] = {name: median(each[name] for each in rounds) for name in names}
    last = {name: value for name, value in rounds[-1].items() if name not in names}
    return {"rounds": len(rounds), **figures, **last}


def _in_ms(seen: list[float]) -> dict[str, int]:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}
    return {name: round(percentile(seen, share) * 1000) for name, share in shares.items()}


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
