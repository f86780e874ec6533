"""`make bench`: Lowtide and kube-scheduler side by side on real parts, and what
traffic costs.

Prints tables and how many goals were met, and writes bench/results.json. The
exit status is 0 where all was measured, whether or not goals were met: the pace
of a machine changes from one quarter of an hour to the next. Read the ratios."""

import argparse
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))

from rich.console import Console  # noqa: E402

from benches import BY_DEFAULT, Bench, Result, Say, all_benches  # noqa: E402
from drain import TURNS  # noqa: E402
from flame import Flame, FlameError  # noqa: E402
from progress import Progress, took_seconds  # noqa: E402
from report_lines import Compared, Report, closing  # noqa: E402
from rows import read_rows, write_rows  # noqa: E402
from short_names import short_names  # noqa: E402

RESULTS = HERE / "results.json"
NAMES_WIDTH = 80
INTERRUPTED = 128 + signal.SIGINT  # as shells say it


def main() -> None:
    options = _options()
    benches = all_benches(options.turns)
    chosen = [bench for bench in benches if _is_chosen(bench.name, options)]
    if not chosen:
        right = f"expected one of these, or its beginning:\n{_names(benches)}"
        sys.exit(f"bench: --only {options.only} names nothing; {right}")
    kept: list[str] = []
    try:
        _measure(chosen, options, kept)
    except FlameError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        where = f"; rows of {', '.join(kept)} are in {options.results}" if kept else ""
        print(f"bench: interrupted{where}", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _measure(chosen: Sequence[Bench], options: argparse.Namespace, kept: list[str]) -> None:
    """`kept` grows with each benchmark of which rows are in the file."""
    # Not on a terminal, wide enough for the widest table.
    console = Console(width=None if sys.stdout.isatty() else 160)
    flame = None if options.flame is None else Flame(options.flame)
    started = time.monotonic()
    found: dict[Callable[[list[Any]], Report], list[Result]] = {}
    failed: list[str] = []
    expected_seconds = {
        bench.name: took_seconds(bench.name) * (options.rounds or bench.rounds) / bench.rounds
        for bench in chosen
    }
    with Progress(console, expected_seconds) as progress:
        for bench in chosen:
            progress.begin(bench.name)
            rounds = options.rounds or bench.rounds
            results: list[Result] = []
            try:
                # Looking on takes time too: such figures are not kept.
                if flame is None:
                    results = list(bench.run(rounds, progress.say))
                    write_rows(options.results, bench.name, results)
                    kept.append(bench.name)
                else:
                    results = list(_run_looked_at(bench, rounds, progress.say, flame))
            except Exception:  # the others are worth an hour
                console.print_exception()
                failed.append(bench.name)
            found.setdefault(bench.report, []).extend(results)
    compared = list(_report(found, console))
    where = f"rows in {options.results}" if kept else "no rows kept"
    if flame is None:
        for line in closing(compared, failed):
            console.print(line, highlight=False, soft_wrap=True)
    else:
        files = " and ".join(map(str, flame.write()))
        where = f"flame graph in {files}{flame.left_out()}, no rows kept"
    print(f"took {time.monotonic() - started:.0f} s; {where}")
    if failed:
        sys.exit(f"bench: not measured or not kept, see above: {', '.join(failed)}")


def _report(
    found: Mapping[Callable[[list[Any]], Report], list[Result]], console: Console
) -> Iterator[Compared]:
    """Prints tables and lines of all that was measured; yields what compares with a goal."""
    for report, results in found.items():
        for part in report(results) if results else ():
            console.print(part, highlight=False)
            if isinstance(part, Compared):
                yield part


def _options() -> argparse.Namespace:
    names = _names(all_benches(TURNS))
    parser = argparse.ArgumentParser(
        prog="make bench",
        usage="make bench [ONLY=NAME | ALL=1] [FLAME=FILE.svg]\n       python bench [options]",
        description=__doc__,
        epilog=f"names, of which --only takes also the beginning, up to a slash:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", default="", metavar="NAME", help="one of the names below")
    chosen.add_argument(
        "--all", action="store_true", help="else drains, decisions, traffic and start at 5000 nodes"
    )
    parser.add_argument("--rounds", type=_rounds, help="else each has its own number")
    parser.add_argument(
        "--results", type=_rows_file, default=str(RESULTS), help="where rows are kept"
    )
    parser.add_argument(
        "--turns",
        type=_turns,
        default=TURNS,
        metavar="NAME,NAME",
        help=f"who takes turns at drains, of {', '.join(TURNS)}",
    )
    parser.add_argument(
        "--flame",
        type=_picture,
        metavar="FILE.svg",
        help="write where the time goes, for a browser",
    )
    return parser.parse_args()


def _names(benches: Sequence[Bench]) -> str:
    return "\n".join(
        textwrap.fill(
            line,
            NAMES_WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        for line in short_names(bench.name for bench in benches)
    )


def _turns(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in TURNS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(TURNS)}")
    return names


def _rounds(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of rounds; expected 1 or more")
    return int(text)


def _file(text: str) -> Path:
    """It need not exist, but it is written only after an hour."""
    file = Path(text)
    if file.is_dir():
        raise argparse.ArgumentTypeError(f"{file} is a folder; expected a file")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"there is no folder {file.parent}; expected a file in one that exists"
        )
    return file


def _rows_file(text: str) -> Path:
    """Rows of other runs stay in it."""
    file = _file(text)
    try:
        read_rows(file)
    except (OSError, ValueError) as error:
        right = "expected the file of another run, or a new one"
        raise argparse.ArgumentTypeError(f"{file} holds no rows ({error}); {right}") from error
    return file


def _picture(text: str) -> Path:
    file = _file(text)
    if file.suffix != ".svg":
        right = file.with_suffix(".svg")
        raise argparse.ArgumentTypeError(f"{file} does not end in .svg; expected {right}")
    return file


def _is_chosen(name: str, options: argparse.Namespace) -> bool:
    """Whole words between slashes: 5000 is not the beginning of 50000."""
    if options.only:
        return f"{name}/".startswith(f"{options.only.rstrip('/')}/")
    return options.all or name in BY_DEFAULT


def _run_looked_at(bench: Bench, rounds: int, say: Say, flame: Flame) -> Iterator[Any]:
    if bench.run_looked_at is not None:
        yield from bench.run_looked_at(rounds, say, flame)
        return
    with flame.of_this_process():
        yield from bench.run(rounds, say)


if __name__ == "__main__":
    main()
