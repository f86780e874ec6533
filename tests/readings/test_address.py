"""Addresses of Prometheus as people write them."""

import pytest

from lowtide.readings.address import (
    ServiceAddress,
    UrlAddress,
    example_for,
    parse_address,
    shown_address,
)


@pytest.mark.parametrize(
    ("written", "query_url", "shown"),
    [
        pytest.param(
            "http://a:9090", "http://a:9090/api/v1/query", "http://a:9090", id="takes a URL"
        ),
        pytest.param("a:9090", "http://a:9090/api/v1/query", "http://a:9090", id="adds http://"),
        pytest.param(
            "https://mimir.example/prometheus/",
            "https://mimir.example/prometheus/api/v1/query",
            "https://mimir.example/prometheus",
            id="keeps a path prefix",
        ),
        pytest.param(
            "vm:8481/select/0/prometheus?extra_label=cluster%3Deast",
            "http://vm:8481/select/0/prometheus/api/v1/query?extra_label=cluster%3Deast",
            "http://vm:8481/select/0/prometheus",
            id="keeps what is asked besides, and does not show it",
        ),
        pytest.param(
            "http://[::1]:9090", "http://[::1]:9090/api/v1/query", "http://[::1]:9090", id="IPv6"
        ),
    ],
)
def test_urls(written: str, query_url: str, shown: str) -> None:
    parsed = parse_address(written)
    assert isinstance(parsed, UrlAddress)
    assert (str(parsed.query_url), parsed.user, parsed.password) == (query_url, None, None)
    assert parsed.shown == shown


def test_user_and_password_are_taken_out_and_not_shown() -> None:
    parsed = parse_address("tide:l%40w@a:9090")
    assert isinstance(parsed, UrlAddress)
    assert str(parsed.query_url) == "http://a:9090/api/v1/query"
    assert (parsed.user, parsed.password) == ("tide", "l@w")
    assert "l@w" not in repr(parsed)


@pytest.mark.parametrize(
    ("written", "want", "path"),
    [
        pytest.param(
            "kube-service://monitoring/prometheus:9090",
            ServiceAddress("monitoring", "prometheus:9090", ""),
            "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query",
            id="takes a Service",
        ),
        pytest.param(
            "kube-service://monitoring/https:thanos-query:web/thanos/",
            ServiceAddress("monitoring", "https:thanos-query:web", "/thanos"),
            "/api/v1/namespaces/monitoring/services/https:thanos-query:web/proxy/thanos/api/v1/query",
            id="takes a scheme, a port by name and a prefix",
        ),
    ],
)
def test_services(written: str, want: ServiceAddress, path: str) -> None:
    assert parse_address(written) == want
    assert (want.query_path, want.shown) == (path, written.rstrip("/"))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        pytest.param("http://", "http://", id="rejects no host"),
        pytest.param("ftp://x", "ftp://x", id="rejects other schemes"),
        pytest.param("a b:9090", "a b:9090", id="rejects a space"),
        pytest.param("http://a..b", "http://a..b", id="rejects a host that nobody resolves"),
        pytest.param("http://" + "x" * 64, "http://" + "x" * 64, id="rejects too long a label"),
        pytest.param("http://u:secret@x:99999", "http://x:99999", id="rejects an impossible port"),
        pytest.param("http://u:sec/ret@x", "http://x", id="hides a password with a slash"),
        pytest.param("u:sec?ret@x y", "x y", id="hides a password with a question mark"),
        pytest.param("http://x y?token=secret", "http://x y", id="hides parameters"),
        pytest.param("kube-service://a/b", "kube-service://a/b", id="wants a Service's port"),
        pytest.param("kube-service://b:9090", "kube-service://b:9090", id="wants a namespace"),
        pytest.param(
            "kube-service://u:secret@a/b:1", "kube-service://a/b:1", id="wants no user of a Service"
        ),
        pytest.param(
            "kube-service://a/b:1?x=y", "kube-service://a/b:1", id="wants no parameters there"
        ),
    ],
)
def test_malformed(written: str, shown: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(written)
    assert str(caught.value) == (
        f"the Prometheus address {shown!r} is malformed; it should look like {example_for(written)}"
    )
    assert shown_address(written) == shown


def test_a_missing_address() -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(" ")
    assert str(caught.value) == (
        "the Prometheus address (prometheusAddress) is missing; "
        "it should look like http://prometheus.example:9090"
    )


def test_examples_are_right_themselves() -> None:
    examples = [example_for("a"), example_for("kube-service://x")]
    assert [type(parse_address(example)) for example in examples] == [UrlAddress, ServiceAddress]
