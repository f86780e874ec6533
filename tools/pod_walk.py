"""Counts what one pod costs a reader: the functions that run from its watch event to its binding.

    python tools/pod_walk.py                  # figures of the walk, there and back
    python tools/pod_walk.py --list           # and every call, indented by depth
    python tools/pod_walk.py --output json    # the figures alone
    python tools/pod_walk.py --tokens --long  # what the core weighs, and what in it is long

The pod is plain (a cpu and a memory request), the profile is the default one, and the core is
warm: pods of the same signature were scheduled before. `there` is `Machine.step(Added)` and
`Machine.step(Turn)` up to the `Bind` action. `back` is `BindingEnded` and the event by which the
watch confirms the binding. Nothing is written, and no time passes.

What counts, in src/lowtide alone:

- functions: distinct functions and methods that run, properties and lambdas included.
  Comprehensions and generator expressions are part of the function around them, and code that
  Python generates (the `__init__` of a dataclass) has no source and does not count.
- calls: how often one of them starts. A generator counts once, however often it is resumed.
- files: those in which one of them is.
- room_changes: how often a call is in another room than the call before it. A room is the first
  folder below lowtide/.
- lines: source lines executed, each time they are (comprehensions included).
"""

import argparse
import ast
import io
import json
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from msgspec.structs import replace

import lowtide
from lowtide.config.load import load_default
from lowtide.framework.plugin import Binder, BindOutcome
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Registry
from lowtide.objects.events import Added, Listed, Modified
from lowtide.objects.kinds import KIND_OF, NEEDED_KINDS
from lowtide.objects.pod import Pod
from lowtide.plugins import BUILT_IN
from lowtide.scheduler.actions import Action, Bind
from lowtide.scheduler.events import BindingEnded, Event, Turn
from lowtide.scheduler.machine import Machine
from lowtide.testing import make_node, make_pod

SOURCE = Path(lowtide.__file__).resolve().parent
CORE_ROOMS = ("framework", "cluster", "scheduler")
NODE_COUNT = 20
WARM_PODS = 10
LONG_FUNCTION_LINES = 40
LONG_FILE_LINES = 400

_PARTS_OF_A_FUNCTION = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)


@dataclass(frozen=True, slots=True)
class Call:
    function: CodeType
    file: str  # below the folder that is traced
    depth: int  # how many counted functions are around it

    @property
    def room(self) -> str:
        return self.file.split("/")[0]

    def __str__(self) -> str:
        name = "  " * self.depth + self.function.co_qualname
        return f"{name}  {self.file}:{self.function.co_firstlineno}"


@dataclass(slots=True)
class Trace:
    """What runs of the files below a folder while it is entered, in order."""

    folder: Path = SOURCE
    calls: list[Call] = field(default_factory=list)
    lines: int = 0
    _open: set[FrameType] = field(default_factory=set)  # also generators that are suspended
    _depth: int = 0
    _outer: Any = None

    def __enter__(self) -> "Trace":
        self._outer = sys.gettrace()
        sys.settrace(self._started)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._outer)
        self._open.clear()

    def _started(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(f"{self.folder}/"):
            return None
        if code.co_name in _PARTS_OF_A_FUNCTION:
            return self._inside_part
        if frame not in self._open:
            self._open.add(frame)
            file = Path(code.co_filename).relative_to(self.folder).as_posix()
            self.calls.append(Call(code, file, self._depth))
        self._depth += 1
        return self._inside

    def _inside(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.lines += 1
        elif event == "return":  # also where a generator is suspended
            self._depth -= 1
        return self._inside

    def _inside_part(self, frame: FrameType, event: str, _: object) -> Any:
        self.lines += event == "line"
        return self._inside_part

    def figures(self) -> dict[str, int]:
        return {
            "functions": len({call.function for call in self.calls}),
            "files": len({call.file for call in self.calls}),
            "room_changes": sum(one.room != next_.room for one, next_ in pairwise(self.calls)),
            "lines": self.lines,
            "calls": len(self.calls),
        }


class _NoBinder:
    """The walk ends where a binding would be sent."""

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        raise NotImplementedError

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        raise NotImplementedError


def default_profile() -> Profile:
    built = Registry(BUILT_IN).build(load_default(), {Binder: _NoBinder()})
    (profile,) = built.profiles.values()
    return profile


def walk() -> dict[str, Trace]:
    """One warm pod, there and back."""
    profile = default_profile()
    machine = Machine({profile.scheduler_name: profile})
    nodes = (make_node(f"node-{number}", cpu="16") for number in range(NODE_COUNT))
    kinds = (*NEEDED_KINDS, *(kind.name for kind in KIND_OF.values()))
    _give(machine, [*map(Added, nodes), *map(Listed, kinds)])
    for number in range(WARM_PODS):
        _walk_one(machine, _pod(f"warm-{number}", profile))
    there, back = _walk_one(machine, _pod("web", profile))
    return {"there": there, "back": back}


def _pod(name: str, profile: Profile) -> Pod:
    return make_pod(name, cpu="100m", memory="64Mi", scheduler_name=profile.scheduler_name)


def _walk_one(machine: Machine, pod: Pod) -> tuple[Trace, Trace]:
    with Trace() as there:
        actions = _give(machine, [Added(pod), Turn()])
    (bind,) = [action for action in actions if isinstance(action, Bind)]
    bound = replace(pod, spec=replace(pod.spec, node_name=bind.node_name))
    events: list[Event] = [BindingEnded(pod.uid, BindOutcome()), Modified(bound)]
    with Trace() as back:
        _give(machine, events)
    return there, back


def _give(machine: Machine, events: Sequence[Event]) -> list[Action]:
    actions: list[Action] = []
    for event in events:
        actions += machine.step(event, 0.0)
    return actions


# How much code there is, and what of it is long.


def token_count(source: str) -> int:
    """Tokens of code: without comments, docstrings, line ends and indents."""
    docstrings = set(_docstring_starts(ast.parse(source)))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(each.type not in _LAYOUT and each.start not in docstrings for each in tokens)


def _docstring_starts(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.Module(body=[ast.Expr(ast.Constant(str())) as first, *_])
                | ast.ClassDef(body=[ast.Expr(ast.Constant(str())) as first, *_])
                | ast.FunctionDef(body=[ast.Expr(ast.Constant(str())) as first, *_])
                | ast.AsyncFunctionDef(body=[ast.Expr(ast.Constant(str())) as first, *_])
            ):
                yield first.lineno, first.col_offset


def tokens_by_room() -> dict[str, int]:
    return {
        room: sum(token_count(path.read_text()) for path in _files(room)) for room in CORE_ROOMS
    }


def long_functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line and length, from `def` to the end."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONG_FUNCTION_LINES:
                yield node.name, node.lineno, length


def long_pieces() -> Iterator[str]:
    for room in CORE_ROOMS:
        for path in _files(room):
            name, source = path.relative_to(SOURCE).as_posix(), path.read_text()
            count = len(source.splitlines())
            if count > LONG_FILE_LINES:
                yield f"{name}: {count} lines"
            for function, line, length in long_functions(source):
                yield f"{name}:{line} {function}: {length} lines"


def _files(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


# The command.


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="also print every call, in order")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--tokens", action="store_true", help="count tokens of code per room")
    parser.add_argument("--long", action="store_true", help="list long functions and files")
    chosen = parser.parse_args(arguments)
    if chosen.tokens or chosen.long:
        if chosen.tokens:
            _print_table(tokens_by_room())
        if chosen.long:
            print(*long_pieces(), sep="\n")
        return
    traces = walk()
    if chosen.output == "json":
        print(json.dumps({way: trace.figures() for way, trace in traces.items()}, indent=2))
        return
    for way, trace in traces.items():
        print(way)
        _print_table(trace.figures())
        if chosen.list:
            print(*trace.calls, sep="\n")


def _print_table(figures: dict[str, int]) -> None:
    for name, figure in figures.items():
        print(f"  {name:14}{figure:8}")


if __name__ == "__main__":
    main()
