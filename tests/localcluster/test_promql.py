import pytest

from lowtide.localcluster.promql import QueryError, RangeFunction, parse

ETH0 = {"device": "eth0", "instance": "10.0.0.1:9100", "job": "node-exporter"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("up", (None, 0, "", ()), id="reads a bare metric"),
        pytest.param("rate(up[1m])", (RangeFunction.RATE, 60, "", ()), id="reads a rate"),
        pytest.param("up[1m]", (None, 60, "", ()), id="reads a range"),
        pytest.param(
            "increase(up[1h30m])", (RangeFunction.INCREASE, 5400, "", ()), id="adds up durations"
        ),
        pytest.param(
            'sum_over_time(up{device="eth0"}[15s])',
            (RangeFunction.SUM_OVER_TIME, 15, "", ()),
            id="reads the seeds' query",
        ),
        pytest.param(
            "sum by (instance, job) (rate(up[1m]))",
            (RangeFunction.RATE, 60, "sum", ("instance", "job")),
            id="reads labels before the sum",
        ),
        pytest.param(
            "max(up) by (instance)", (None, 0, "max", ("instance",)), id="reads labels after"
        ),
    ],
)
def test_parse(text: str, want: tuple[object, ...]) -> None:
    query = parse(text)
    assert query.selector.metric == "up"
    assert (query.function, query.range_seconds, query.aggregation, query.labels) == want


@pytest.mark.parametrize(
    "text",
    ["rate(up[1m]) and up{device='eth0'}", "max by (job) (rate(up[1m]) and up{device='eth0'})"],
)
def test_and(text: str) -> None:
    query = parse(text)
    assert query.present is not None
    assert (query.function, query.present.metric) == (RangeFunction.RATE, "up")
    assert [query.present.matches(each) for each in (ETH0, {})] == [True, False]


@pytest.mark.parametrize(
    ("matchers", "want"),
    [
        pytest.param('device="eth0"', True, id="matches an equal label"),
        pytest.param('device!="eth0"', False, id="rejects an unequal label"),
        pytest.param('device=~"eth.*|lo"', True, id="matches a whole expression"),
        pytest.param('device=~"eth"', False, id="rejects part of a value"),
        pytest.param('device!~"lo|veth.*",job="node-exporter",', True, id="takes several"),
        pytest.param('instance=~"10\\\\.0\\\\.0\\\\.1:9100"', True, id="reads escapes"),
        pytest.param("node=''", True, id="takes an absent label as empty"),
    ],
)
def test_matchers(matchers: str, want: bool) -> None:
    assert parse(f"up{{{matchers}}}").selector.matches(ETH0) is want


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rate(up)",
        "rate(up[x])",
        "up{device=eth0}",
        'up{device=~"("}',
        "up +",
        "histogram_quantile(0.9, up)",
        "sum(sum(up))",
        "up{",
        "up up",
        "up and",
        "up[1m] and up",
        "sum(up) and up",
        "up and rate(up[1m])",
    ],
)
def test_other_queries_are_rejected(text: str) -> None:
    with pytest.raises(QueryError):
        parse(text)
