import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from tests.server.conftest import running

from lowtide.server.http import Server
from lowtide.server.pod_resources import pod_resources_route
from lowtide.testing import make_pod


async def test_a_pods_author_cannot_make_series_up() -> None:
    odd = 'x"} 1\nforged{a="b\\'
    pod = make_pod("web", cpu="1500m", scheduler_name=odd)
    server = Server([pod_resources_route(lambda: [pod])], port=0)
    async with (
        running(server) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/metrics/resources") as response,
    ):
        text = await response.text()
    (family,) = text_string_to_metric_families(text)
    (sample,) = family.samples
    assert (family.name, sample.value) == ("kube_pod_resource_request", 1.5)
    assert sample.labels == {
        "namespace": "default",
        "node": "",
        "pod": "web",
        "priority": "0",
        "resource": "cpu",
        "scheduler": odd,
        "unit": "cores",
    }


async def test_a_pod_that_cannot_be_read_is_left_out() -> None:
    pods = [make_pod("bad", cpu="many"), make_pod("good", cpu="1")]
    server = Server([pod_resources_route(lambda: pods)], port=0)
    async with (
        running(server) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/metrics/resources") as response,
    ):
        text = await response.text()
    assert ['pod="good"' in line for line in text.splitlines() if line[0] != "#"] == [True]
