from typing import Any

import aiohttp
import pytest

from lowtide.localcluster import Background, Link, LocalCluster, LocalNode
from lowtide.testing.clock import ManualClock

RECEIVE = "node_network_receive_bytes_total"
LINKS = (Link("eth0", 1_000_000), Link("eth1", 2_000_000))
NODES = [
    LocalNode("a", links=LINKS, background=Background(quiet_share=0.1)),
    LocalNode("b", links=LINKS[:1], background=Background(0.5, transmit_per_receive=0.5)),
]
A = {"instance": "10.231.0.2:9100", "job": "node-exporter"}
B = {"instance": "10.231.0.3:9100", "job": "node-exporter"}


async def query(clock: ManualClock, text: str, method: str = "POST") -> tuple[int, Any]:
    asked = {"query": text}
    async with (
        LocalCluster(clock=clock, nodes=NODES) as cluster,
        aiohttp.ClientSession(base_url=cluster.prometheus_url) as http,
    ):
        sent = {"data": asked} if method == "POST" else {"params": asked}
        async with http.request(method, "/api/v1/query", **sent) as response:  # type: ignore[arg-type]
            return response.status, await response.json()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            f"rate({RECEIVE}[1m])",
            [
                ({**A, "device": "eth0"}, 100_000),
                ({**A, "device": "eth1"}, 200_000),
                ({**B, "device": "eth0"}, 500_000),
            ],
            id="gives each link's rate",
        ),
        pytest.param(
            'increase(node_network_transmit_bytes_total{device="eth0"}[10s])',
            [({**A, "device": "eth0"}, 1_000_000), ({**B, "device": "eth0"}, 2_500_000)],
            id="gives the increase over the range",
        ),
        pytest.param(
            f"sum by (instance) (rate({RECEIVE}[1m]))",
            [({"instance": A["instance"]}, 300_000), ({"instance": B["instance"]}, 500_000)],
            id="sums by label",
        ),
        pytest.param(
            f'rate({RECEIVE}[1m]) and {RECEIVE}{{device="eth0"}}',
            [({**A, "device": "eth0"}, 100_000), ({**B, "device": "eth0"}, 500_000)],
            id="gives rates of what another selector has now",
        ),
        pytest.param(
            f"max by (node, instance, device) (rate({RECEIVE}[1m]) and {RECEIVE})",
            [
                ({"instance": A["instance"], "device": "eth0"}, 100_000),
                ({"instance": A["instance"], "device": "eth1"}, 200_000),
                ({"instance": B["instance"], "device": "eth0"}, 500_000),
            ],
            id="leaves out the labels that are not asked for",
        ),
        pytest.param(f"rate({RECEIVE}[1m]) and up", [], id="matches by all labels but the name"),
        pytest.param(f"max(rate({RECEIVE}[1m]))", [({}, 500_000)], id="takes the maximum of all"),
        pytest.param(
            'node_network_speed_bytes{device!~"eth0"}',
            [({"__name__": "node_network_speed_bytes", **A, "device": "eth1"}, 2_000_000)],
            id="gives the speed",
        ),
        pytest.param(
            'up{instance=~".*0.3:.*"}', [({"__name__": "up", **B}, 1)], id="knows what is up"
        ),
        pytest.param("node_load1", [], id="knows nothing of other metrics"),
    ],
)
async def test_answers(clock: ManualClock, text: str, want: list[Any]) -> None:
    status, answer = await query(clock, text)
    assert (status, answer["status"], answer["data"]["resultType"]) == (200, "success", "vector")
    result = answer["data"]["result"]
    found = [(one["metric"], round(float(one["value"][1]))) for one in result]
    assert found == want
    assert {one["value"][0] for one in result} <= {clock()}


async def test_sum_over_time_adds_up_the_samples_of_the_range(clock: ManualClock) -> None:
    _, answer = await query(clock, f'sum_over_time({RECEIVE}{{device="eth1"}}[3s])', "GET")
    (series,) = answer["data"]["result"]
    # Up for 600 s at 200,000 bytes/s; samples 598, 599 and 600 s after the start.
    assert float(series["value"][1]) == pytest.approx((598 + 599 + 600) * 200_000, abs=3)


async def test_uname_carries_the_node_name(clock: ManualClock) -> None:
    _, answer = await query(clock, "node_uname_info")
    names = {
        one["metric"]["instance"]: one["metric"]["nodename"] for one in answer["data"]["result"]
    }
    assert names == {A["instance"]: "a", B["instance"]: "b"}


async def test_a_range_of_its_own_gives_the_samples(clock: ManualClock) -> None:
    _, answer = await query(clock, f'{RECEIVE}{{device="eth1"}}[3s]')
    (series,) = answer["data"]["result"]
    assert answer["data"]["resultType"] == "matrix"
    assert series["metric"] == {"__name__": RECEIVE, **A, "device": "eth1"}
    assert [at - clock() for at, _ in series["values"]] == [-2, -1, 0]
    values = [float(value) for _, value in series["values"]]
    # Up for 600 s at 200,000 bytes/s.
    assert values == pytest.approx([598 * 200_000, 599 * 200_000, 600 * 200_000], abs=1)


async def test_a_running_pod_is_measured_by_its_name(clock: ManualClock) -> None:
    asked = {
        "query": "sum by (namespace, pod) (rate(container_network_receive_bytes_total"
        '{pod!="",interface!="lo"}[10s]))'
    }
    async with (
        LocalCluster(clock=clock, nodes=NODES) as cluster,
        aiohttp.ClientSession(base_url=cluster.prometheus_url) as http,
    ):
        cluster.traffic.start_pod("uid", "a", 5_000, named=("shop", "web-1"))
        clock.advance(20)
        async with http.post("/api/v1/query", data=asked) as response:
            (series,) = (await response.json())["data"]["result"]
    assert series["metric"] == {"namespace": "shop", "pod": "web-1"}
    assert round(float(series["value"][1])) == 5_000


async def test_other_queries_get_prometheus_error_json(clock: ManualClock) -> None:
    status, answer = await query(clock, "rate(up)")
    assert (status, answer) == (
        400,
        {
            "status": "error",
            "errorType": "bad_data",
            "error": "parse error in 'rate(up)': found ')', expected '['",
        },
    )
