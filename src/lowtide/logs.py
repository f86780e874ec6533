"""Log lines in the two forms of Kubernetes components: klog's text and JSON.

Every room writes through a Log; app calls configure_logs once, before anything else runs.
"""

import json
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from numbers import Integral, Real
from types import FrameType, TracebackType
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]
ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_INFO = logging.INFO
_FIELDS = "lowtide_fields"
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_GO_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}
# What json.dumps leaves alone although a terminal or a line reader would act on it.
_UNSAFE_IN_JSON = re.compile(
    "[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)


class Log:
    """Writes the log lines of one module.

    Verbosity as in klog: V(n) is the level of stdlib logging n below INFO, so that asking
    whether a line is wanted is stdlib's own cached check and formats nothing.
    """

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def enabled(self, level: int, /) -> bool:
        """Whether v(level, ...) would be printed: ask it before preparing costly fields."""
        return self._logger.isEnabledFor(_stdlib_level(level))

    def v(self, level: int, msg: str, /, **fields: object) -> None:
        stdlib_level = _stdlib_level(level)
        if self._logger.isEnabledFor(stdlib_level):
            self._write(stdlib_level, msg, fields, sys._getframe(1))

    def info(self, msg: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(_INFO):
            self._write(_INFO, msg, fields, sys._getframe(1))

    def warning(self, msg: str, /, **fields: object) -> None:
        if self._logger.isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, msg, fields, sys._getframe(1))

    def error(self, msg: str, /, **fields: object) -> None:
        """What went wrong belongs in the field `err`, an exception or a text."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._write(logging.ERROR, msg, fields, sys._getframe(1))

    def exception(self, msg: str, /, **fields: object) -> None:
        """An error with the stack of the exception being handled: for bugs of ours only."""
        if self._logger.isEnabledFor(logging.ERROR):
            fields.setdefault("err", sys.exc_info()[1])
            self._write(logging.ERROR, msg, fields, sys._getframe(1), _current_exc_info())

    def _write(
        self,
        stdlib_level: int,
        msg: str,
        fields: dict[str, object],
        caller: FrameType,
        exc_info: ExcInfo | None = None,
    ) -> None:
        code = caller.f_code
        record = self._logger.makeRecord(
            self._logger.name,
            stdlib_level,
            code.co_filename,
            caller.f_lineno,
            msg,
            (),
            exc_info,
            code.co_name,
        )
        record.__dict__[_FIELDS] = fields
        self._logger.handle(record)


def configure_logs(
    *,
    verbosity: int,
    format: LogFormat,  # noqa: A002 (the word of the flag --logging-format)
    stream: TextIO,
    clock: Callable[[], float],
    pid: int | None = None,
) -> None:
    """Sends the lines of every logger, third-party ones included, to one stream.

    Calling it again replaces what the previous call set.
    """
    formatter = (
        TextFormatter(clock, os.getpid() if pid is None else pid)
        if format == "text"
        else JsonFormatter(clock)
    )
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LineHandler)]:
        root.removeHandler(handler)
    line_handler = LineHandler(stream)
    line_handler.setFormatter(formatter)
    root.addHandler(line_handler)
    root.setLevel(_stdlib_level(verbosity))


class LineHandler(logging.Handler):
    """Writes each record at once, in one write, so that lines of processes do not mix."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        # Where the reader of our log has gone, scheduling goes on without it.
        with suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()


class TextFormatter(logging.Formatter):
    """klog's text form, but a text with line breaks stays on one line, escaped."""

    def __init__(self, clock: Callable[[], float], pid: int) -> None:
        super().__init__()
        self._clock = clock
        self._pid = pid

    def format(self, record: logging.LogRecord) -> str:
        now = datetime.fromtimestamp(self._clock())
        head = (
            f"{_severity_letter(record.levelno)}{now.month:02}{now.day:02}"
            f" {now.hour:02}:{now.minute:02}:{now.second:02}.{now.microsecond:06}"
            f" {self._pid:>7} {record.filename}:{record.lineno}]"
        )
        fields = _fields_of(record)
        message = record.getMessage().rstrip("\n")
        if fields:
            pairs = "".join(f" {key}={_text_value(value)}" for key, value in fields.items())
            line = f"{head} {quote(message)}{pairs}"
        else:
            line = f"{head} {_escape_unprintable(message)}"
        stack = _stack_of(record)
        if stack is None:
            return line
        # klog's form of a value with several lines: a tab before each keeps them apart from
        # lines of the log, whatever an exception's text holds.
        indented = "".join(f"\t{_escape_unprintable(row)}\n" for row in stack.splitlines())
        return f"{line} stacktrace=<\n{indented} >"


class JsonFormatter(logging.Formatter):
    """The form of Kubernetes components with --logging-format=json, and a level beside it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, object] = {
            "ts": round(self._clock() * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "level": _level_name(record.levelno),
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            document["v"] = max(0, _INFO - record.levelno)
        for key, value in _fields_of(record).items():
            document[f"{key}_" if key in document else key] = _json_value(value)
        stack = _stack_of(record)
        if stack is not None:
            document["stacktrace"] = stack
        return _dump_json(document)


def quote(text: str) -> str:
    """The text in double quotes with what is not printable escaped, as Go's strconv.Quote."""
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escape_unprintable(text)}"'


def _stdlib_level(verbosity: int) -> int:
    # logging knows no level below 1: V(19) and all above it are one level.
    return _INFO - verbosity if verbosity < _INFO else 1


def _current_exc_info() -> ExcInfo | None:
    kind, exception, stack = sys.exc_info()
    return None if kind is None or exception is None else (kind, exception, stack)


def _severity_letter(stdlib_level: int) -> str:
    if stdlib_level >= logging.ERROR:
        return "E"
    return "W" if stdlib_level >= logging.WARNING else "I"


def _level_name(stdlib_level: int) -> str:
    if stdlib_level >= logging.ERROR:
        return "error"
    return "warning" if stdlib_level >= logging.WARNING else "info"


def _fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields with `err` first, where klog writes it; none for a third-party record."""
    fields: dict[str, object] = record.__dict__.get(_FIELDS, {})
    if "err" not in fields:
        return fields
    rest = {key: value for key, value in fields.items() if key != "err"}
    return rest if fields["err"] is None else {"err": fields["err"], **rest}


def _stack_of(record: logging.LogRecord) -> str | None:
    if not record.exc_info or record.exc_info[0] is None:
        return None
    return "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")


def _text_value(value: object) -> str:
    plain = _json_value(value)
    if isinstance(plain, str):
        return quote(plain)
    if type(plain) is int:
        return str(plain)
    if isinstance(plain, float):
        return repr(plain).replace("e-0", "e-")
    return _dump_json(plain)


def _json_value(value: object) -> object:
    """What JSON can hold of a value, numbers as Go writes them; any other object as its text."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):  # numpy's
        return int(value)
    if isinstance(value, Real):
        return _json_number(float(value))
    if isinstance(value, Mapping):
        return {str(key): _json_value(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [_json_value(item) for item in sorted(value, key=str)]
    return _object_text(value)


def _json_number(value: float) -> object:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _object_text(value: object) -> str:
    """The object's own text: a log line is never the reason why a scheduler stops."""
    try:
        text = str(value)
    except Exception as failure:
        return f"<{type(value).__name__} without a text: {type(failure).__name__}>"
    if isinstance(value, BaseException) and not text:
        return type(value).__name__
    return text


def _dump_json(value: object) -> str:
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", _JSON.encode(value))


def _escape_unprintable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _GO_ESCAPES:
        return _GO_ESCAPES[char]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, kept by surrogateescape
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
