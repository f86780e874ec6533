"""From the bytes of an answer to series, or to a sentence that says why there are none.

Called by the client with what an endpoint was answered."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NoReturn

import msgspec

from lowtide.input_limits import OBJECT_BYTES
from lowtide.logs import Log
from lowtide.readings.address import shown_address
from lowtide.readings.rest import Rest, no_rest
from lowtide.readings.series import Series
from lowtide.telemetry.errors import AddressFailure, Fault

log = Log("telemetry")

MOST_WARNINGS_LOGGED: Final = 5  # per answer
MOST_WARNINGS_REMEMBERED: Final = 100
# A sentence quotes the first words of a page that is not Prometheus's: they are in here.
PAGE_BYTES_READ: Final = 64 * 1024
# Some 250 rows: other threads wait while a piece is read.
PIECE_BYTES: Final = 1 << 16
# What is read takes several times the memory of its text, and most where rows are short.
MOST_SERIES: Final = 2_000_000
MOST_LABELS: Final = 10_000_000
# Not in a string, where quotes are escaped.
_BETWEEN_ROWS: Final = re.compile(rb'\}\s*,\s*\{\s*"metric"\s*:')
REDIRECTS: Final = (301, 302, 303, 307, 308)
# With them Prometheus says that the query is wrong, or that it cannot be computed.
QUERY_REJECTED: Final = (400, 422)
NOT_ALLOWED: Final = (401, 403)

# A tag that is not closed reaches to the end of the page, so that the time is linear.
_MARKS: Final = re.compile(r"<(script|style).*?(?:</\1>|\Z)|<[^>]*(?:>|\Z)", re.DOTALL)

# Labels, and samples as (seconds since 1970, value).
RangeSeries = tuple[dict[str, str], list[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one address answered; `quote` makes its words fit for a log."""

    address: str
    status: int
    body: bytes
    quote: Callable[[str], str]
    location: str = ""


class _Row(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, float]


class _WrittenRow(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _RangeRow(msgspec.Struct, gc=False):
    metric: dict[str, str]
    values: list[tuple[float, float]]


class _WrittenRangeRow(msgspec.Struct, gc=False):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Document(msgspec.Struct, rename="camel"):
    """Prometheus's answer, and of the API server's Status what tells the two apart."""

    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None
    kind: str = ""
    message: str = ""


class AnswerReader:
    """Reads answers; logs a warning in them once per text, and a few of one answer."""

    def __init__(self, rest: Rest = no_rest) -> None:
        self._rest = rest
        self._warnings_seen: set[str] = set()
        self._documents = msgspec.json.Decoder(_Document)
        self._rows = msgspec.json.Decoder(list[_Row], strict=False)
        self._written_rows = msgspec.json.Decoder(list[_WrittenRow])
        self._range_rows = msgspec.json.Decoder(list[_RangeRow], strict=False)
        self._written_range_rows = msgspec.json.Decoder(list[_WrittenRangeRow])

    def vector(self, answer: Answer, promql: str) -> list[Series]:
        """AddressFailure when there is none."""
        result = self._result(answer, promql, "vector")
        try:
            return self._series(result)
        except (ValueError, RecursionError) as error:
            _fail_unreadable(answer, promql, "vector", error)

    def matrix(self, answer: Answer, promql: str) -> list[RangeSeries]:
        """AddressFailure when there is none."""
        result = self._result(answer, promql, "matrix")
        try:
            return self._range_series(result)
        except (ValueError, RecursionError) as error:
            _fail_unreadable(answer, promql, "matrix", error)

    def _series(self, result: msgspec.Raw) -> list[Series]:
        """In pieces: other threads wait while one is read."""
        found: list[Series] = []
        labels = 0
        for piece in _row_pieces(memoryview(result)):
            some = self._some_series(piece)
            found += some
            labels += sum(len(series.labels) for series in some)
            if len(found) > MOST_SERIES or labels > MOST_LABELS:
                raise ValueError(f"more than {MOST_SERIES:,} series or {MOST_LABELS:,} labels")
            self._rest()
        return found

    def _some_series(self, rows: bytes) -> list[Series]:
        try:
            # Two thirds of the time for many nodes, but msgspec does not know "+Inf".
            return [
                Series(row.metric, row.value[1], row.value[0]) for row in self._rows.decode(rows)
            ]
        except msgspec.ValidationError:
            return [
                Series(row.metric, float(row.value[1]), row.value[0])
                for row in self._written_rows.decode(rows)
            ]

    def _range_series(self, result: msgspec.Raw) -> list[RangeSeries]:
        _check_length(memoryview(result))
        try:
            # Half the time for a hundred thousand samples, but msgspec does not know "+Inf".
            return [(row.metric, row.values) for row in self._range_rows.decode(result)]
        except msgspec.ValidationError:
            return [
                (row.metric, [(time, float(value)) for time, value in row.values])
                for row in self._written_range_rows.decode(result)
            ]

    def _result(self, answer: Answer, promql: str, wanted: str) -> msgspec.Raw:
        if answer.status in REDIRECTS:
            _fail_moved(answer)
        try:
            document = self._documents.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _fail_not_prometheus(answer)
        if document.status != "success":
            _fail_rejected(answer, promql, document)
        self._warn(answer, document.warnings or [])
        if document.data is None or document.data.result_type != wanted:
            given = (
                "nothing"
                if document.data is None
                else f"a {answer.quote(document.data.result_type)}"
            )
            raise AddressFailure(
                answer.address,
                f"answered {given} to the query {promql}, which should give a {wanted}",
                Fault.NOT_PROMETHEUS if document.data is None else Fault.QUERY,
            )
        return document.data.result

    def _warn(self, answer: Answer, warnings: list[str]) -> None:
        texts = dict.fromkeys(map(answer.quote, warnings[:MOST_WARNINGS_REMEMBERED]))
        unseen = [text for text in texts if text not in self._warnings_seen]
        logged = unseen[:MOST_WARNINGS_LOGGED]
        # A text that names a moment or a number is new each time: forget rather than grow.
        if len(self._warnings_seen) + len(logged) > MOST_WARNINGS_REMEMBERED:
            self._warnings_seen.clear()
        self._warnings_seen.update(logged)
        for text in logged:
            log.warning("Prometheus warns", address=answer.address, warning=text)
        if len(unseen) > len(logged):
            log.warning(
                "Further warnings of Prometheus are not logged",
                address=answer.address,
                warnings=len(warnings) - len(logged),
            )


def _fail_moved(answer: Answer) -> NoReturn:
    target = answer.quote(shown_address(answer.location))
    raise AddressFailure(
        answer.address,
        f"answered HTTP {answer.status}, a redirect{' to ' if target else ''}{target}; "
        "the address should be the one that answers queries itself",
        Fault.NOT_PROMETHEUS,
    )


def _fail_not_prometheus(answer: Answer) -> NoReturn:
    page = answer.body[:PAGE_BYTES_READ].decode("utf-8", "replace")
    is_html = page.lstrip().startswith("<")
    words = answer.quote(_MARKS.sub(" ", page) if is_html else page)
    reason = _with_phrase(answer.status)
    if answer.status in NOT_ALLOWED:
        said = f' with "{words}"' if words else ""
        text = f"answered HTTP {reason}{said}; it should be given credentials that it accepts"
        raise AddressFailure(answer.address, text, Fault.AUTH)
    if is_html:
        text = (
            f'answered HTTP {reason} with HTML ("{words}") instead of JSON; '
            "the address or its path prefix may be that of something else"
        )
    else:
        text = f'answered HTTP {reason} with "{words}" instead of Prometheus\'s JSON'
    raise AddressFailure(answer.address, text, Fault.NOT_PROMETHEUS)


def _fail_rejected(answer: Answer, promql: str, document: _Document) -> NoReturn:
    is_allowed = answer.status not in NOT_ALLOWED
    if document.kind == "Status":
        raise AddressFailure(
            answer.address,
            "is not reached through the API server, which answered HTTP "
            f"{_with_phrase(answer.status)}: {answer.quote(document.message)}",
            Fault.UNREACHABLE if is_allowed else Fault.AUTH,
        )
    said = answer.quote(f"{document.error_type}: {document.error}")
    fault = Fault.QUERY if answer.status in QUERY_REJECTED else Fault.SERVER
    raise AddressFailure(
        answer.address,
        f"rejected the query {promql} with HTTP {answer.status}: {said}",
        fault if is_allowed else Fault.AUTH,
    )


def _row_pieces(rows: memoryview) -> Iterator[bytes]:
    """Lists of some rows each. Rows that are spelled in another way stay together."""
    begin = 1  # behind the bracket
    while cut := _BETWEEN_ROWS.search(rows, begin + PIECE_BYTES):
        yield b"".join((b"[", _check_length(rows[begin : cut.start() + 1]), b"]"))
        begin = cut.start() + cut[0].index(b"{")
    yield b"".join((b"[", _check_length(rows[begin:])))


def _check_length(rows: memoryview) -> memoryview:
    if len(rows) > OBJECT_BYTES:
        raise ValueError(f"more than {OBJECT_BYTES >> 20} MiB that can only be read as one piece")
    return rows


def _fail_unreadable(
    answer: Answer, promql: str, kind: str, error: ValueError | RecursionError
) -> NoReturn:
    raise AddressFailure(
        answer.address,
        f"answered a {kind} that cannot be read to the query {promql}: {answer.quote(str(error))}",
        Fault.QUERY,
    ) from error


def _with_phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
