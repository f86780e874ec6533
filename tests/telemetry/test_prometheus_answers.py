"""From bytes to series: what is read, and the sentence for what cannot be."""

import json
import math
from collections.abc import Callable

import pytest

from lowtide.readings.series import Series
from lowtide.telemetry.errors import AddressFailure, Fault
from lowtide.telemetry.prometheus_access import quoter
from lowtide.telemetry.prometheus_answers import (
    MOST_WARNINGS_LOGGED,
    PIECE_BYTES,
    Answer,
    AnswerReader,
)

VECTOR = '{"status":"success","data":{"resultType":"vector","result":[%s]}}'
MATRIX = '{"status":"success","data":{"resultType":"matrix","result":[%s]}}'
ONE_ROW = '{"metric":{"instance":"a:9100","device":"eth0"},"value":[1435781451.781,"%s"]}'
REJECTED = '{"status":"error","errorType":"%s","error":"%s"}'


def answer(body: str | bytes, status: int = 200, location: str = "") -> Answer:
    raw = body if isinstance(body, bytes) else body.encode()
    return Answer("http://x", status, raw, quoter(()), location)


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("1.5", 1.5, id="reads a number"),
        pytest.param("1.51099652057e+11", 151099652057.0, id="reads an exponent"),
        pytest.param("+Inf", math.inf, id="reads an infinity"),
        pytest.param("-Inf", -math.inf, id="reads a negative infinity"),
    ],
)
def test_values(written: str, want: float) -> None:
    found = AnswerReader().vector(answer(VECTOR % (ONE_ROW % written)), "up")
    assert found == [Series({"instance": "a:9100", "device": "eth0"}, want, 1435781451.781)]


MANY = 3 * PIECE_BYTES // len(ONE_ROW)


@pytest.mark.parametrize("row", [ONE_ROW, ONE_ROW[:-1] + ',"more":[{"a":1},{"b":2}]}'])
@pytest.mark.parametrize("between", [",", ", ", ",\n  "])
def test_many_series_are_read_in_order(row: str, between: str) -> None:
    written = [*map(str, range(MANY)), "+Inf", "7"]
    body = VECTOR % between.join(row % value for value in written)
    found = AnswerReader().vector(answer(body), "up")
    assert [one.value for one in found] == [*range(MANY), math.inf, 7]


def test_many_series_that_begin_otherwise_are_read() -> None:
    row = '{"value":[1,"%s"],"metric":{}}'
    body = VECTOR % ",".join(row % value for value in range(2 * PIECE_BYTES // len(row)))
    found = AnswerReader().vector(answer(body), "up")
    assert [one.value for one in found] == [*range(2 * PIECE_BYTES // len(row))]


def test_it_rests_between_the_pieces_of_a_long_answer() -> None:
    rests: list[None] = []
    reader = AnswerReader(rest=lambda: rests.append(None))
    rows = (ONE_ROW % "1" for _ in range(MANY))
    reader.vector(answer(VECTOR % ",".join(rows)), "up")
    assert len(rests) == 3


MANY_LABELS = json.dumps({"metric": dict.fromkeys(map(str, range(100_000)), ""), "value": [1, "2"]})
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(DEEP, "instead of Prometheus's JSON", id="the whole"),
        pytest.param(VECTOR % DEEP, "instead of Prometheus's JSON", id="a row"),
    ],
)
def test_what_is_nested_too_deep_is_rejected(body: str, want: str) -> None:
    with pytest.raises(AddressFailure) as caught:
        AnswerReader().vector(answer(body), "up")
    assert want in caught.value.text


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param("1," * (9 << 20) + "1", "can only be read as one piece", id="no rows"),
        pytest.param(
            ONE_ROW.replace("eth0", "e" * (17 << 20)) % "1",
            "can only be read as one piece",
            id="a row that is very long",
        ),
        pytest.param(
            ",".join(['{"metric":{},"value":[1,"2"]}'] * 2_000_001),
            "more than 2,000,000 series",
            id="very many rows",
        ),
        pytest.param(
            ",".join([MANY_LABELS] * 101),
            "10,000,000 labels",
            id="very many labels",
        ),
    ],
)
def test_what_would_take_much_memory_is_rejected(rows: str, want: str) -> None:
    with pytest.raises(AddressFailure) as caught:
        AnswerReader().vector(answer(VECTOR % rows), "up")
    assert want in caught.value.text
    assert caught.value.fault is Fault.QUERY


def test_very_many_samples_are_rejected() -> None:
    row = json.dumps({"metric": {}, "values": [[1, "2"]] * (2 << 20)})
    with pytest.raises(AddressFailure, match="can only be read as one piece"):
        AnswerReader().matrix(answer(MATRIX % row), "up")


def test_nan_is_handed_on() -> None:
    found = AnswerReader().vector(answer(VECTOR % (ONE_ROW % "NaN")), "up")
    assert [math.isnan(one.value) for one in found] == [True]


def test_what_prometheus_3_says_besides_is_left_alone() -> None:
    body = VECTOR.replace("{", '{"infos":["metric might not be a counter"],', 1)
    assert AnswerReader().vector(answer(body % ""), "up") == []


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param("1.5e+3", 1500.0, id="reads numbers"),
        pytest.param("-Inf", -math.inf, id="reads a negative infinity"),
        pytest.param("+Inf", math.inf, id="reads an infinity, which msgspec does not"),
    ],
)
def test_matrices(written: str, want: float) -> None:
    rows = (
        f'{{"metric":{{"node":"a"}},"values":[[100,"1"],[115.5,"{written}"]]}},'
        '{"metric":{"node":"b"},"values":[]}'
    )
    assert AnswerReader().matrix(answer(MATRIX % rows), "up[1m]") == [
        ({"node": "a"}, [(100.0, 1.0), (115.5, want)]),
        ({"node": "b"}, []),
    ]


@pytest.mark.parametrize(
    ("given", "fault", "want"),
    [
        pytest.param(
            answer(
                "<!DOCTYPE html><html><head><style>p {}</style><title>Log in</title></head>\n"
                "<body><p>to go on</p></body></html>"
            ),
            Fault.NOT_PROMETHEUS,
            'answered HTTP 200 OK with HTML ("Log in to go on") instead of JSON; '
            "the address or its path prefix may be that of something else",
            id="says that it met HTML",
        ),
        pytest.param(
            answer("404 page not found\n", 404),
            Fault.NOT_PROMETHEUS,
            'answered HTTP 404 Not Found with "404 page not found" instead of Prometheus\'s JSON',
            id="says that it met a plain 404",
        ),
        pytest.param(
            answer("", 599),
            Fault.NOT_PROMETHEUS,
            'answered HTTP 599 with "" instead of Prometheus\'s JSON',
            id="says that it met an empty answer",
        ),
        pytest.param(
            answer(b'{"status":"\xff"}', 200),
            Fault.NOT_PROMETHEUS,
            'answered HTTP 200 OK with "{"status":"\N{REPLACEMENT CHARACTER}"}" '
            "instead of Prometheus's JSON",
            id="says that it met what is no text",
        ),
        pytest.param(
            answer('{"message":"no such route"}', 404),
            Fault.NOT_PROMETHEUS,
            'answered HTTP 404 Not Found with "{"message":"no such route"}" '
            "instead of Prometheus's JSON",
            id="says that it met another's JSON",
        ),
        pytest.param(
            answer("x" * 300),
            Fault.NOT_PROMETHEUS,
            f'answered HTTP 200 OK with "{"x" * 200}…" instead of Prometheus\'s JSON',
            id="does not quote at length",
        ),
        pytest.param(
            answer("no\n", 401),
            Fault.AUTH,
            'answered HTTP 401 Unauthorized with "no"; '
            "it should be given credentials that it accepts",
            id="says that it was not let in",
        ),
        pytest.param(
            answer("", 403),
            Fault.AUTH,
            "answered HTTP 403 Forbidden; it should be given credentials that it accepts",
            id="says that it may not ask",
        ),
        pytest.param(
            answer(REJECTED % ("forbidden", "not your tenant"), 403),
            Fault.AUTH,
            "rejected the query up with HTTP 403: forbidden: not your tenant",
            id="passes on who may not ask",
        ),
        pytest.param(
            answer(REJECTED % ("bad_data", "parse error:\\n unexpected"), 400),
            Fault.QUERY,
            "rejected the query up with HTTP 400: bad_data: parse error: unexpected",
            id="passes on what Prometheus finds wrong",
        ),
        pytest.param(
            answer(REJECTED % ("execution", "many-to-many matching"), 422),
            Fault.QUERY,
            "rejected the query up with HTTP 422: execution: many-to-many matching",
            id="passes on what Prometheus cannot compute",
        ),
        pytest.param(
            answer(REJECTED % ("timeout", "query timed out"), 503),
            Fault.SERVER,
            "rejected the query up with HTTP 503: timeout: query timed out",
            id="tells a busy server from a wrong query",
        ),
        pytest.param(
            answer(
                '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound",'
                '"message":"services \\"prometheus\\" not found","code":404}',
                404,
            ),
            Fault.UNREACHABLE,
            "is not reached through the API server, which answered HTTP 404 Not Found: "
            'services "prometheus" not found',
            id="tells the API server's words from Prometheus's",
        ),
        pytest.param(
            answer('{"kind":"Status","status":"Failure","message":"may not"}', 403),
            Fault.AUTH,
            "is not reached through the API server, which answered HTTP 403 Forbidden: may not",
            id="says that the kubeconfig's user may not ask",
        ),
        pytest.param(
            answer('{"status":"success","data":{"resultType":"scalar","result":[1.0,"1"]}}'),
            Fault.QUERY,
            "answered a scalar to the query up, which should give a vector",
            id="rejects a scalar",
        ),
        pytest.param(
            answer('{"status":"success","data":{"resultType":"%s","result":[]}}' % ("x" * 300)),
            Fault.QUERY,
            f"answered a {'x' * 200}… to the query up, which should give a vector",
            id="does not quote a type at length",
        ),
        pytest.param(
            answer(MATRIX % ""),
            Fault.QUERY,
            "answered a matrix to the query up, which should give a vector",
            id="rejects a matrix",
        ),
        pytest.param(
            answer('{"status":"success"}'),
            Fault.NOT_PROMETHEUS,
            "answered nothing to the query up, which should give a vector",
            id="rejects an answer without data",
        ),
        pytest.param(
            answer(VECTOR % (ONE_ROW % "many")),
            Fault.QUERY,
            "answered a vector that cannot be read to the query up: "
            "could not convert string to float: 'many'",
            id="rejects a value that is no number",
        ),
        pytest.param(
            answer(VECTOR % '{"metric":{},"histogram":[1.0,{}]}'),
            Fault.QUERY,
            "answered a vector that cannot be read to the query up: "
            "Object missing required field `value` - at `$[0]`",
            id="rejects a histogram",
        ),
        pytest.param(
            answer("", 302, "https://u:p@login.example/?secret=1"),
            Fault.NOT_PROMETHEUS,
            "answered HTTP 302, a redirect to https://login.example/; "
            "the address should be the one that answers queries itself",
            id="does not follow a redirect",
        ),
        pytest.param(
            answer("", 307),
            Fault.NOT_PROMETHEUS,
            "answered HTTP 307, a redirect; "
            "the address should be the one that answers queries itself",
            id="does not mind a redirect to nowhere",
        ),
    ],
)
def test_bad_answers(given: Answer, fault: Fault, want: str) -> None:
    with pytest.raises(AddressFailure) as caught:
        AnswerReader().vector(given, "up")
    assert (caught.value.text, caught.value.fault) == (want, fault)
    assert str(caught.value) == f"Prometheus at http://x {want}"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            VECTOR % "",
            "answered a vector to the query up[1m], which should give a matrix",
            id="rejects a vector for a matrix",
        ),
        pytest.param(
            MATRIX % '{"metric":{},"values":[[1,"x"]]}',
            "answered a matrix that cannot be read to the query up[1m]: "
            "could not convert string to float: 'x'",
            id="rejects a sample that is no number",
        ),
    ],
)
def test_bad_matrices(body: str, want: str) -> None:
    with pytest.raises(AddressFailure) as caught:
        AnswerReader().matrix(answer(body), "up[1m]")
    assert (caught.value.text, caught.value.fault) == (want, Fault.QUERY)


@pytest.mark.timeout(60)  # where time grows with the square of the length, each takes hours
@pytest.mark.parametrize(
    "part",
    [
        pytest.param("<", id="tags without an end"),
        pytest.param("<script", id="scripts without an end"),
        pytest.param("<script><style>", id="scripts that end as something else"),
        pytest.param("<a>", id="tags alone"),
        pytest.param(" ", id="space alone"),
        pytest.param("x", id="text"),
    ],
)
def test_a_large_page_is_read_at_once(part: str) -> None:
    page = "<html>" + part * (10_000_000 // len(part))
    with pytest.raises(AddressFailure, match="answered HTTP 200 OK with HTML"):
        AnswerReader().vector(answer(page), "up")


def test_of_many_warnings_few_are_logged(log_lines: Callable[[], list[str]]) -> None:
    warnings = ",".join(f'"store {number} is away"' for number in range(100_000))
    body = VECTOR.replace("{", f'{{"warnings":[{warnings}],', 1)
    AnswerReader().vector(answer(body % ""), "up")
    assert log_lines() == [
        *(
            f'W "Prometheus warns" address="http://x" warning="store {number} is away"'
            for number in range(MOST_WARNINGS_LOGGED)
        ),
        'W "Further warnings of Prometheus are not logged" address="http://x" '
        f"warnings={100_000 - MOST_WARNINGS_LOGGED}",
    ]


def test_many_warnings_that_come_again_and_again_fall_silent(
    log_lines: Callable[[], list[str]],
) -> None:
    warnings = ",".join(f'"store {number} is away"' for number in range(1000))
    body = VECTOR.replace("{", f'{{"warnings":[{warnings}],', 1) % ""
    reader = AnswerReader()
    for _ in range(100):
        reader.vector(answer(body), "up")
    before = len(log_lines())
    for _ in range(100):
        reader.vector(answer(body), "up")
    assert len(log_lines()) == before


def test_a_long_warning_is_cut(log_lines: Callable[[], list[str]]) -> None:
    body = VECTOR.replace("{", '{"warnings":["%s"],' % ("x" * 300), 1)
    AnswerReader().vector(answer(body % ""), "up")
    assert log_lines() == [
        f'W "Prometheus warns" address="http://x" warning="{"x" * 200}…"',
    ]


def test_a_warning_is_logged_once_per_text(log_lines: Callable[[], list[str]]) -> None:
    body = VECTOR.replace("{", '{"warnings":["%s"],', 1)
    reader = AnswerReader()
    for text in ("one store\\nis away", "one store\\nis away", "two are"):
        reader.vector(answer(body % (text, "")), "up")
    assert log_lines() == [
        'W "Prometheus warns" address="http://x" warning="one store is away"',
        'W "Prometheus warns" address="http://x" warning="two are"',
    ]
