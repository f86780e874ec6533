"""`python tools/recorder`: what kube-scheduler of any version decides, recorded as cases, and what
it sends to extenders.

Standard library only but for `requests`, so that it runs before a virtual environment exists."""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from realparts.parts import MissingPart, say_on_stderr  # noqa: E402
from recorder.build import obtain_recorder  # noqa: E402
from recorder.changes import compare, table  # noqa: E402
from recorder.clusters import make_clusters  # noqa: E402
from recorder.queues import make_queues  # noqa: E402
from recorder.recording import BadCases, read_cases, record, write_cases  # noqa: E402
from recorder.wakes import make_wakes  # noqa: E402

NODES = 200
STEPS = 60
PROBLEMS_SHOWN = 20


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (MissingPart, BadCases, OSError) as rejection:
        say_on_stderr(f"recorder: {rejection}")
        return 1


def _record(options: argparse.Namespace) -> int:
    cases = list(read_cases(options.cases))
    program = obtain_recorder(options.kubernetes, say_on_stderr)
    done = record(program, cases, repeat=options.repeat, path=options.recorded, say=say_on_stderr)
    for problem in done.problems[:PROBLEMS_SHOWN]:
        say_on_stderr(f"recorder: {problem}")
    left_out = len(cases) - done.answered
    say_on_stderr(
        f"recorder: {done.answered} of {len(cases)} cases recorded with kube-scheduler "
        f"{options.kubernetes} in {options.recorded}, {left_out} left out"
    )
    return 1 if left_out else 0


def _make(options: argparse.Namespace) -> int:
    if options.what == "clusters":
        cases = make_clusters(seed=options.seed, cases=options.cases, nodes=NODES)
    elif options.what == "wakes":
        cases = make_wakes(seed=options.seed, cases=options.cases)
    else:
        cases = make_queues(seed=options.seed, cases=options.cases, steps=STEPS)
    say_on_stderr(f"recorder: {write_cases(options.file, cases)} cases in {options.file}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    print(table(compare(read_cases(options.before), read_cases(options.after))))
    return 0


def _requests(options: argparse.Namespace) -> int:
    from recorder.extender_requests import record_requests  # needs the virtual environment

    written = record_requests(options.folder)
    say_on_stderr(f"recorder: {len(written)} requests in {options.folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tools/recorder",
        description="What kube-scheduler of any version decides, recorded as cases for the tests. "
        "Files are JSON lines of id, family and scenario, and gzipped when they end in .gz.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    recording = commands.add_parser("record", help="answer cases by kube-scheduler of one version")
    recording.add_argument("--kubernetes", required=True, metavar="VERSION", help="such as 1.36.4")
    recording.add_argument(
        "--repeat",
        type=int,
        default=3,
        metavar="TIMES",
        help="how often each case is asked; one whose answer changes is left out (default: 3)",
    )
    recording.add_argument("cases", type=Path, metavar="IN")
    recording.add_argument("recorded", type=Path, metavar="OUT")
    recording.set_defaults(run=_record)
    making = commands.add_parser("make", help="make cases without answers")
    making.add_argument("what", choices=("clusters", "queues", "wakes"))
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--cases", type=int, default=16, metavar="COUNT")
    making.add_argument("file", type=Path, metavar="OUT")
    making.set_defaults(run=_make)
    comparing = commands.add_parser("compare", help="a table of what differs in two recordings")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.set_defaults(run=_compare)
    asking = commands.add_parser(
        "requests", help="what kube-scheduler of the real parts sends to an extender"
    )
    asking.add_argument("folder", type=Path, metavar="FOLDER", help="gets one file for each")
    asking.set_defaults(run=_requests)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
