"""`python -m soak`: prints how it goes, and the figures as its last line; writes the samples, two
plots and the scheduler's log into a folder."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from soak.curve import write_plots
from soak.sampling import Sample, write_samples
from soak.session import Session, Size

DEFAULT_FOLDER = Path(__file__).resolve().parent.parent.parent / "soak"


def main(arguments: Sequence[str]) -> int:
    size = Size()
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument(
        "--for", type=float, default=size.seconds, dest="seconds", metavar="SECONDS"
    )
    parser.add_argument("--nodes", type=int, default=size.nodes)
    parser.add_argument("--pods", type=int, default=size.pods, help="that are there at a time")
    parser.add_argument("--changes-per-second", type=float, default=size.changes_per_second)
    parser.add_argument("--sample-seconds", type=float, default=size.sample_seconds)
    parser.add_argument("--rest-seconds", type=float, default=size.rest_seconds)
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    options = parser.parse_args(arguments)
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = Size(
        seconds=options.seconds,
        nodes=options.nodes,
        pods=options.pods,
        changes_per_second=options.changes_per_second,
        sample_seconds=options.sample_seconds,
        rest_seconds=options.rest_seconds,
    )

    def keep(samples: list[Sample]) -> None:
        write_samples(folder / "samples.csv", samples)
        write_plots(folder, samples)

    figures = Session(wanted, folder, say, keep).run()
    for fault in figures.faults:
        say(f"FAULT: {fault}")
    say(json.dumps(figures.as_json()))
    return 1 if figures.faults else 0


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
