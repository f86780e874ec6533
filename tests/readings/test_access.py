"""What users write about Prometheus, what is rejected, and the value that becomes of it."""

from typing import Any

import pytest

from lowtide.config.decoding import Decoder
from lowtide.readings.access import BasicAuthArgs, PrometheusAccess, PrometheusArgs


def decoded(written: dict[str, Any]) -> PrometheusArgs:
    decoder = Decoder()
    args = decoder.decode(PrometheusArgs, written)
    assert decoder.problems == []
    return args


def test_every_field_is_read_and_handed_on() -> None:
    args = decoded(
        {
            "addresses": ["https://b:9090", "https://c:9090"],
            "caFile": "/tls/ca.crt",
            "certFile": "/tls/tls.crt",
            "keyFile": "/tls/tls.key",
            "basicAuth": {"username": "tide", "passwordFile": "/password"},
            "headers": {"X-Scope-OrgID": "team-a", "X-Other": "1"},
            "timeout": "2500ms",
        }
    )
    assert list(args.problems()) == []
    assert args.access("https://a:9090") == PrometheusAccess(
        addresses=("https://a:9090", "https://b:9090", "https://c:9090"),
        ca_file="/tls/ca.crt",
        cert_file="/tls/tls.crt",
        key_file="/tls/tls.key",
        username="tide",
        password_file="/password",
        headers=(("X-Other", "1"), ("X-Scope-OrgID", "team-a")),
        timeout_seconds=2.5,
    )
    bearer = decoded({"bearerTokenFile": "/token", "insecureSkipVerify": True})
    assert bearer.access("a") == PrometheusAccess(
        addresses=("a",), insecure_skip_verify=True, bearer_token_file="/token"
    )


def test_nothing_written_is_the_address_alone() -> None:
    assert decoded({}).access("a:9090") == PrometheusAccess(addresses=("a:9090",))


@pytest.mark.parametrize(
    ("address", "listed", "want"),
    [
        pytest.param("a", ["b", "a"], ("a", "b"), id="puts the single address first"),
        pytest.param("", ["b", "a"], ("b", "a"), id="does without the single address"),
        pytest.param("a", ["http://a/", "a"], ("a",), id="knows another spelling of the same"),
        pytest.param("http://u:p@a", ["a"], ("http://u:p@a", "a"), id="tells users apart"),
        pytest.param(" ", [], (), id="may have none"),
        pytest.param("a b", ["a b"], ("a b",), id="leaves a malformed one to be rejected"),
    ],
)
def test_addresses(address: str, listed: list[str], want: tuple[str, ...]) -> None:
    assert PrometheusArgs(addresses=listed).access(address).addresses == want


def test_equal_accesses_are_one_key() -> None:
    first = PrometheusArgs(headers={"A": "1", "B": "2"}).access("a")
    second = PrometheusArgs(headers={"B": "2", "A": "1"}).access("a")
    assert {first: "one"}[second] == "one"


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            PrometheusArgs(addresses=["a", "http://u:secret@x:y"]),
            ("addresses", "must look like http://prometheus.example:9090, not 'http://x:y'"),
            id="rejects a malformed address and hides the password",
        ),
        pytest.param(
            PrometheusArgs(addresses=["kube-service://prometheus"]),
            (
                "addresses",
                "must look like kube-service://monitoring/prometheus:9090, "
                "not 'kube-service://prometheus'",
            ),
            id="rejects a malformed Service",
        ),
        pytest.param(
            PrometheusArgs(addresses=[""]),
            ("addresses", "must look like http://prometheus.example:9090, not ''"),
            id="rejects an empty address",
        ),
        pytest.param(
            PrometheusArgs(cert_file="c"),
            ("certFile", "must be given together with keyFile"),
            id="rejects a certificate without a key",
        ),
        pytest.param(
            PrometheusArgs(key_file="k"),
            ("keyFile", "must be given together with certFile"),
            id="rejects a key without a certificate",
        ),
        pytest.param(
            PrometheusArgs(ca_file="c", insecure_skip_verify=True),
            ("insecureSkipVerify", "must be false with a caFile, which verifies the server"),
            id="rejects to verify and not to verify",
        ),
        pytest.param(
            PrometheusArgs(bearer_token_file="t", basic_auth=BasicAuthArgs("u", "p")),
            ("bearerTokenFile", "must not be combined with basicAuth: only one can be sent"),
            id="rejects a token beside a password",
        ),
        pytest.param(
            PrometheusArgs(basic_auth=BasicAuthArgs(password_file="p")),
            ("basicAuth", "must have a username"),
            id="rejects a password of nobody",
        ),
        pytest.param(
            PrometheusArgs(basic_auth=BasicAuthArgs("a:b")),
            ("basicAuth", "must have a username without a colon, which would end it"),
            id="rejects a username with a colon",
        ),
        pytest.param(
            PrometheusArgs(basic_auth=BasicAuthArgs("a\nb")),
            ("basicAuth", "must have a username without line breaks"),
            id="rejects a username with a line break",
        ),
        pytest.param(
            PrometheusArgs(headers={"X Y": "1"}),
            ("headers", "must have names such as X-Scope-OrgID, not 'X Y'"),
            id="rejects what is no header's name",
        ),
        pytest.param(
            PrometheusArgs(headers={"content-type": "1"}),
            ("headers", "must not have content-type, which Lowtide sets itself"),
            id="rejects a header of the request itself",
        ),
        pytest.param(
            PrometheusArgs(headers={"authorization": "1"}, bearer_token_file="t"),
            ("headers", "must not have authorization together with bearerTokenFile or basicAuth"),
            id="rejects two credentials",
        ),
        pytest.param(
            PrometheusArgs(headers={"X-Key": "secret\r\nHost: x"}),
            ("headers", "must have a value without line breaks for X-Key"),
            id="rejects a line break and does not repeat the value",
        ),
        pytest.param(
            PrometheusArgs(timeout_seconds=0.0),
            ("timeout", "must be longer than 0s, not 0s"),
            id="rejects no time at all",
        ),
        pytest.param(
            PrometheusArgs(timeout_seconds=-1.5),
            ("timeout", "must be longer than 0s, not -1.5s"),
            id="rejects a negative time",
        ),
    ],
)
def test_problems(args: PrometheusArgs, want: tuple[str, str]) -> None:
    assert list(args.problems()) == [want]


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(
            {"timeout": "soon"},
            (("timeout",), 'must be a duration such as 15s or 1m30s, not the string "soon"'),
            id="rejects a time that is none",
        ),
        pytest.param(
            {"basicAuth": {"username": "u", "password": "secret"}},
            (
                ("basicAuth", "password"),
                'is not a known field, did you mean "passwordFile"? '
                "valid here are username, passwordFile",
            ),
            id="rejects a password that is written down",
        ),
        pytest.param(
            {"headers": {"X-Key": 12345}},
            (("headers", "X-Key"), "must be a string; put the value in quotes"),
            id="does not repeat a header's value",
        ),
    ],
)
def test_what_the_decoder_rejects(
    written: dict[str, Any], want: tuple[tuple[str, ...], str]
) -> None:
    decoder = Decoder()
    decoder.decode(PrometheusArgs, written)
    assert [(problem.path, problem.text) for problem in decoder.problems] == [want]


@pytest.mark.parametrize(
    "described",
    [
        pytest.param(
            PrometheusArgs(addresses=["u:secret@a?key=secret"], headers={"X-Any": "secret"}),
            id="hides secrets of args",
        ),
        pytest.param(
            PrometheusAccess(addresses=("u:secret@a",), headers=(("X-Any", "secret"),)),
            id="hides secrets of an access",
        ),
    ],
)
def test_texts(described: PrometheusArgs | PrometheusAccess) -> None:
    for text in (repr(described), str(described), repr([described])):
        assert "secret" not in text
        assert "addresses=['a'], " in text
        assert "headers=['X-Any'], " in text
