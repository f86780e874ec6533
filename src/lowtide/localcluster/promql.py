"""The small part of PromQL that Lowtide sends, parsed: a selector, a range of one, a function over
such a range (`and` a selector: of the series that are there now), or a sum or maximum by labels.
Called by PrometheusServer and the simulated Prometheus."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<duration>(?:\d+(?:ms|[smhdwy]))+)|(?P<sign>=~|!~|!=|[=(){}\[\],]))"
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNIT_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "y": 31536000.0,
}
AGGREGATIONS = ("sum", "max")


class QueryError(ValueError):
    """A query that is no PromQL, or PromQL beyond what this cluster answers."""


class RangeFunction(Enum):
    RATE = "rate"
    INCREASE = "increase"
    SUM_OVER_TIME = "sum_over_time"


@dataclass(frozen=True, slots=True)
class Selector:
    metric: str
    matchers: tuple[Callable[[Mapping[str, str]], bool], ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(matcher(labels) for matcher in self.matchers)


@dataclass(frozen=True, slots=True)
class Query:
    """`aggregation` (sum or max, "" for none) by `labels` of `function` over `selector`, of the
    series alone whose labels one of `present` has as well (None: of all).

    A range without a function asks for the samples themselves."""

    selector: Selector
    function: RangeFunction | None = None
    range_seconds: float = 0.0
    aggregation: str = ""
    labels: tuple[str, ...] = ()
    present: Selector | None = None


def parse(text: str) -> Query:
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._position = 0

    def query(self) -> Query:
        found = self._operand()
        if self._peek() != "and":
            return found
        self._next()
        if found.aggregation or (found.range_seconds and found.function is None):
            raise QueryError(f"`and` after such an expression is not answered here: {self._text!r}")
        return replace(found, present=self._selector())

    def _operand(self) -> Query:
        word = self._peek()
        if word in AGGREGATIONS:
            return self._aggregated()
        if word in [function.value for function in RangeFunction]:
            return self._function()
        selector = self._selector()
        return Query(selector, range_seconds=self._range() if self._peek() == "[" else 0.0)

    def end(self) -> None:
        if self._position < len(self._tokens):
            raise self._unexpected("end of the query")

    def _aggregated(self) -> Query:
        aggregation = self._next()
        labels = self._by_labels()
        self._expect("(")
        inner = self.query()
        self._expect(")")
        labels = labels or self._by_labels()
        if inner.range_seconds and inner.function is None:
            raise QueryError(f"expected an instant vector in an aggregation: {self._text!r}")
        if inner.aggregation:
            raise QueryError(f"nested aggregations are not answered here: {self._text!r}")
        return replace(inner, aggregation=aggregation, labels=labels)

    def _by_labels(self) -> tuple[str, ...]:
        if self._peek() != "by":
            return ()
        self._next()
        self._expect("(")
        labels = []
        while self._peek() != ")":
            labels.append(self._next())
            if self._peek() == ",":
                self._next()
        self._expect(")")
        return tuple(labels)

    def _function(self) -> Query:
        function = RangeFunction(self._next())
        self._expect("(")
        selector = self._selector()
        seconds = self._range()
        self._expect(")")
        return Query(selector, function, seconds)

    def _range(self) -> float:
        self._expect("[")
        seconds = _duration_seconds(self._next())
        self._expect("]")
        return seconds

    def _selector(self) -> Selector:
        metric = self._next()
        if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", metric):
            self._position -= 1
            raise self._unexpected("the name of a metric")
        if self._peek() == "(":
            raise QueryError(
                f"the function {metric} is not answered here; rate, increase, sum_over_time, sum "
                "and max are"
            )
        matchers = []
        if self._peek() == "{":
            self._next()
            while self._peek() != "}":
                matchers.append(_matcher(self._next(), self._next(), self._next()))
                if self._peek() == ",":
                    self._next()
            self._next()
        return Selector(metric, tuple(matchers))

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._unexpected("more")
        self._position += 1
        return token

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._unexpected(repr(sign))
        self._position += 1

    def _unexpected(self, wanted: str) -> QueryError:
        found = repr(self._peek()) if self._peek() else "its end"
        return QueryError(f"parse error in {self._text!r}: found {found}, expected {wanted}")


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if not found:
            rest = stripped[position:].strip()[:10]
            raise QueryError(f"parse error in {text!r}: cannot read on at {rest!r}")
        tokens.append(found.group().strip())
        position = found.end()
    if not tokens:
        raise QueryError("parse error: no expression found in input")
    return tokens


def _matcher(label: str, operator: str, quoted: str) -> Callable[[Mapping[str, str]], bool]:
    if quoted[:1] not in ("'", '"') or operator not in ("=", "!=", "=~", "!~"):
        raise QueryError(
            f'parse error in the matcher {label}{operator}{quoted}: write label="value" with '
            "one of = != =~ !~"
        )
    value = _unquoted(quoted)
    if operator == "=":
        return lambda labels: labels.get(label, "") == value
    if operator == "!=":
        return lambda labels: labels.get(label, "") != value
    try:
        expression = re.compile(value)
    except re.error as error:
        raise QueryError(f"error parsing regexp {value!r}: {error}") from None
    is_wanted = operator == "=~"
    return lambda labels: bool(expression.fullmatch(labels.get(label, ""))) is is_wanted


def _unquoted(quoted: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, quoted[1:-1])


def _duration_seconds(text: str) -> float:
    parts = re.findall(r"(\d+)(ms|[smhdwy])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise QueryError(f"not a valid duration string: {text!r}; write it like 15s or 3m")
    return sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts)
