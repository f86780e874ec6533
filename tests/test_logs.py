"""Log lines against what klog v2.140.0 and component-base v0.36.4 print for the same values."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime

import numpy as np
import pytest

from lowtide.logs import LineHandler, Log, LogFormat, TextFormatter, configure_logs

MOMENT = datetime(2023, 11, 15, 6, 4, 18, 729841)


@pytest.fixture(autouse=True)
def _root_logger_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def captured(
    write: Callable[[Log], None],
    *,
    verbosity: int = 0,
    form: LogFormat = "text",
    pid: int = 12345,
) -> list[str]:
    stream = io.StringIO()
    configure_logs(verbosity=verbosity, format=form, stream=stream, clock=MOMENT.timestamp, pid=pid)
    write(Log("lowtide.example"))
    return stream.getvalue().split("\n")[:-1]


def line_of(function: Callable[[Log], None]) -> int:
    return function.__code__.co_firstlineno


def test_a_line_with_fields_is_klogs() -> None:
    def write(log: Log) -> None:
        log.info("Successfully bound pod to node", pod="default/x", node="n", evaluatedNodes=2)

    assert captured(write) == [
        f"I1115 06:04:18.729841   12345 test_logs.py:{line_of(write) + 1}] "
        '"Successfully bound pod to node" pod="default/x" node="n" evaluatedNodes=2'
    ]


def test_a_line_without_fields_is_the_message_alone() -> None:
    def write(log: Log) -> None:
        log.info("[NetworkTraffic] node 'x' bandwidth: 5")

    assert captured(write, pid=1) == [
        f"I1115 06:04:18.729841       1 test_logs.py:{line_of(write) + 1}] "
        "[NetworkTraffic] node 'x' bandwidth: 5"
    ]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("plain", '"plain"', id="quotes a text"),
        pytest.param('q"b\\', r'"q\"b\\"', id="escapes quotes and backslashes"),
        pytest.param(
            "\x1b[31m\x7f\a\t\r\u0085\u2028\u202e€中😀\u00a0\U000e0001\udcff",
            r'"\x1b[31m\x7f\a\t\r\u0085\u2028\u202e€中😀\u00a0\U000e0001\xff"',
            id="escapes what is not printable as strconv.Quote does",
        ),
        pytest.param("a\nE1115 b", r'"a\nE1115 b"', id="keeps a line break inside one line"),
        pytest.param(-3, "-3", id="leaves an integer plain"),
        pytest.param(np.int64(2**62 + 1), "4611686018427387905", id="keeps a numpy integer exact"),
        pytest.param(0.5, "0.5", id="leaves a fraction plain"),
        pytest.param(1.0, "1", id="writes a whole float as Go does"),
        pytest.param(np.float32(1.5), "1.5", id="leaves a numpy fraction plain"),
        pytest.param(1e21, "1e+21", id="writes a huge float with an exponent"),
        pytest.param(1e-7, "1e-7", id="writes a tiny float with Go's exponent"),
        pytest.param(1.5e16, "15000000000000000", id="writes a large float in full"),
        pytest.param(float("nan"), '"NaN"', id="writes a float that is no number as a text"),
        pytest.param(True, "true", id="writes a truth value as Go does"),
        pytest.param(None, "null", id="writes nothing as null"),
        pytest.param(["a", "b"], '["a","b"]', id="writes a list as JSON"),
        pytest.param((1, 2), "[1,2]", id="writes a tuple as a list"),
        pytest.param({"z", "a"}, '["a","z"]', id="writes a set in order"),
        pytest.param({"b": 1, "a": 2}, '{"a":2,"b":1}', id="writes a mapping in order"),
        pytest.param(["\x85\n"], r'["\u0085\n"]', id="escapes inside a list"),
        pytest.param(ValueError('bo"om'), r'"bo\"om"', id="writes an exception as its text"),
        pytest.param(TimeoutError(), '"TimeoutError"', id="names an exception without a text"),
        pytest.param(
            Unprintable(), '"<Unprintable without a text: RuntimeError>"', id="survives any object"
        ),
    ],
)
def test_text_values(value: object, want: str) -> None:
    (line,) = captured(lambda log: log.info('m"sg', k=value))
    assert line.partition("] ")[2] == rf'"m\"sg" k={want}'


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("nl\nx", r'"nl\nx"', id="escapes a line break"),
        pytest.param("\x1b\x7f\x85", r'"\u001b\u007f\u0085"', id="escapes control characters"),
        pytest.param("\u202e中\udcff", r'"\u202e中\udcff"', id="keeps letters and no overrides"),
        pytest.param(float("inf"), '"+Inf"', id="writes infinity as a text"),
        pytest.param(1.0, "1", id="writes a whole float as Go does"),
        pytest.param(["a", "b<c"], '["a","b<c"]', id="writes a list as a list"),
        pytest.param(None, "null", id="writes nothing as null"),
    ],
)
def test_json_values(value: object, want: str) -> None:
    def write(log: Log) -> None:
        log.v(2, "msg", k=value)

    assert captured(write, verbosity=2, form="json") == [
        f'{{"ts":{round(MOMENT.timestamp() * 1000, 3)}'
        f',"caller":"test_logs.py:{line_of(write) + 1}","level":"info","msg":"msg","v":2'
        f',"k":{want}}}'
    ]


def test_a_json_error_has_err_first_and_no_verbosity() -> None:
    (line,) = captured(lambda log: log.error("Failed", pod="ns/n", err=OSError("bad")), form="json")
    assert list(json.loads(line).items())[2:] == [
        ("level", "error"),
        ("msg", "Failed"),
        ("err", "bad"),
        ("pod", "ns/n"),
    ]


def test_a_field_called_like_a_json_key_does_not_replace_it() -> None:
    (line,) = captured(lambda log: log.warning("real", msg="other"), form="json")
    assert list(json.loads(line).items())[2:] == [
        ("level", "warning"),
        ("msg", "real"),
        ("v", 0),
        ("msg_", "other"),
    ]


@pytest.mark.parametrize(
    ("write", "want"),
    [
        pytest.param(
            lambda log: log.error("Failed", pod="ns/n", err="bad"),
            'E "Failed" err="bad" pod="ns/n"',
            id="puts err first on an E line",
        ),
        pytest.param(
            lambda log: log.error("Failed", err=None, pod="ns/n"),
            'E "Failed" pod="ns/n"',
            id="leaves out an err that is not there",
        ),
        pytest.param(lambda log: log.warning("careful"), "W careful", id="marks a warning with W"),
        pytest.param(
            lambda log: log.info("one\nE1115 two \x1b[0m"),
            r"I one\nE1115 two \x1b[0m",
            id="escapes a message without fields too",
        ),
        pytest.param(
            lambda log: log.info('100% of "it" %s'), 'I 100% of "it" %s', id="formats no percent"
        ),
    ],
)
def test_text_lines(write: Callable[[Log], None], want: str) -> None:
    (line,) = captured(write)
    assert f"{line[0]} {line.partition('] ')[2]}" == want


@pytest.mark.parametrize(
    ("verbosity", "want"),
    [
        pytest.param(0, [0], id="prints only V(0) by default"),
        pytest.param(2, [0, 1, 2], id="prints V(2) at -v 2"),
        pytest.param(10, [0, 1, 2, 10], id="prints V(10) at -v 10"),
        pytest.param(99, [0, 1, 2, 10, 30], id="prints any V at -v 99"),
    ],
)
def test_verbosity(verbosity: int, want: list[int]) -> None:
    levels = [0, 1, 2, 10, 30]

    def write(log: Log) -> None:
        for level in levels:
            log.v(level, f"{level}")
        enabled.extend(level for level in levels if log.enabled(level))

    enabled: list[int] = []
    lines = captured(write, verbosity=verbosity)
    assert ([line.partition("] ")[2] for line in lines], enabled) == ([str(n) for n in want], want)
    assert {line[0] for line in lines} == {"I"}


def test_a_line_that_is_off_looks_at_no_field() -> None:
    assert captured(lambda log: log.v(1, "off", value=Unprintable())) == []


def test_an_exception_of_ours_shows_its_stack_apart_from_log_lines() -> None:
    def write(log: Log) -> None:
        try:
            raise ValueError("bad\nE1115 \x1b[2J forged")
        except ValueError:
            log.exception("Plugin failed", plugin="SameRack")

    first = line_of(write)
    assert captured(write) == [
        f"E1115 06:04:18.729841   12345 test_logs.py:{first + 4}] "
        r'"Plugin failed" err="bad\nE1115 \x1b[2J forged" plugin="SameRack" stacktrace=<',
        "\tTraceback (most recent call last):",
        f'\t  File "{__file__}", line {first + 2}, in write',
        '\t    raise ValueError("bad\\nE1115 \\x1b[2J forged")',
        "\tValueError: bad",
        "\tE1115 \\x1b[2J forged",
        " >",
    ]


def test_a_json_exception_has_its_stack_in_one_line() -> None:
    def write(log: Log) -> None:
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("Plugin failed")

    (line,) = captured(write, form="json")
    assert json.loads(line)["stacktrace"].splitlines()[-1] == "ValueError: bad"


def test_third_party_loggers_end_in_the_same_stream() -> None:
    def write(log: Log) -> None:
        logging.getLogger("aiohttp.server").error("Unhandled %s\n", "thing")
        logging.getLogger("asyncio").debug("Using selector")

    assert captured(write) == [
        f"E1115 06:04:18.729841   12345 test_logs.py:{line_of(write) + 1}] Unhandled thing"
    ]


def test_configuring_again_replaces_the_stream() -> None:
    first = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=first, clock=MOMENT.timestamp, pid=1)
    assert len(captured(lambda log: log.info("second"))) == 1
    assert first.getvalue() == ""


def test_a_closed_stream_stops_nobody() -> None:
    stream = io.StringIO()
    configure_logs(verbosity=0, format="text", stream=stream, clock=MOMENT.timestamp, pid=1)
    stream.close()
    Log("lowtide.example").info("nobody reads this")


def test_an_argument_that_does_not_fit_its_format_stops_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.setFormatter(TextFormatter(MOMENT.timestamp, pid=1))
    handler.handle(
        logging.LogRecord("aiohttp", logging.ERROR, __file__, 1, "%d things", ("no",), None)
    )
    assert stream.getvalue() == ""
    assert "TypeError: %d format: a real number is required" in capsys.readouterr().err
