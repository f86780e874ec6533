"""The tool that counts what one pod costs a reader: what it counts, and that its walk arrives."""

import json
import textwrap
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from pod_walk import Trace, long_functions, main, token_count, walk

FIGURES = {"functions", "files", "room_changes", "lines", "calls"}

UPPER = """\
def start(lower):
    total = sum(n for n in counted(lower))
    return total + sum([lower.one() for _ in range(2)])


def counted(lower):
    yield lower.one()
    yield lower.one()
"""
LOWER = """\
def one():
    return 1
"""


def loaded(path: Path, source: str) -> ModuleType:
    path.parent.mkdir()
    path.write_text(source)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_calls_are_counted_by_function_file_and_room(tmp_path: Path) -> None:
    upper = loaded(tmp_path / "upper" / "start.py", UPPER)
    lower = loaded(tmp_path / "lower" / "one.py", LOWER)
    with Trace(tmp_path) as trace:
        assert upper.start(lower) == 4
    assert [str(call) for call in trace.calls] == [
        "start  upper/start.py:1",
        "  counted  upper/start.py:6",
        "    one  lower/one.py:1",
        "    one  lower/one.py:1",
        "  one  lower/one.py:1",
        "  one  lower/one.py:1",
    ]
    # start 2, each of its comprehensions 1 and then 1 for each of 2 items, counted 2, one 4 times
    assert trace.figures() == {
        "functions": 3,
        "files": 2,
        "room_changes": 1,
        "lines": 14,
        "calls": 6,
    }


def test_nothing_is_counted_elsewhere(tmp_path: Path) -> None:
    with Trace(tmp_path) as trace:
        json.dumps({}, indent=2)
    assert (trace.calls, trace.lines) == ([], 0)


def test_the_walk_passes_through_the_core_and_only_there() -> None:
    traces = walk()
    assert list(traces) == ["there", "back"]
    for trace in traces.values():
        rooms = {call.room for call in trace.calls}
        assert rooms >= {"scheduler", "cluster"}
        assert rooms <= {"scheduler", "framework", "plugins", "cluster", "objects"}
        assert trace.calls[0].function.co_qualname == "Machine.step"
        assert trace.calls[0].depth == 0


def test_json_has_the_figures_alone(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--output", "json"])
    printed = json.loads(capsys.readouterr().out)
    assert {way: set(figures) for way, figures in printed.items()} == {
        "there": FIGURES,
        "back": FIGURES,
    }
    assert printed["there"]["calls"] > printed["back"]["calls"] > 0


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("x = 1\n", 3, id="of a statement"),
        pytest.param("# why\nx = 1  # one\n\n\n", 3, id="without comments and empty lines"),
        pytest.param('"""A module."""\nx = "text"\n', 3, id="with texts but no docstrings"),
        pytest.param(
            'def f():\n    """It\n    returns."""\n    return 1\n', 7, id="without indents"
        ),
    ],
)
def test_tokens(source: str, count: int) -> None:
    assert token_count(source) == count


def test_functions_over_40_lines_are_long() -> None:
    def function(name: str, length: int) -> str:
        return f"def {name}():\n" + textwrap.indent("pass\n" * (length - 1), "    ")

    source = function("just_right", 40) + function("too_long", 41)
    assert list(long_functions(source)) == [("too_long", 41, 41)]


def test_weights_and_lengths_are_printed_without_a_walk(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--tokens", "--long"])
    printed = capsys.readouterr().out
    rooms = [line.split()[0] for line in printed.splitlines()[:3]]
    assert rooms == ["framework", "cluster", "scheduler"]
    assert "there" not in printed
