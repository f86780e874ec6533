"""/metrics/resources: what every pod requests and may take at most, as kube-scheduler tells it.

Long in a large cluster, so made piece by piece: pods are placed meanwhile."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from aiohttp import web

from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, pod_limits, pod_requests

REQUEST: Final = "kube_pod_resource_request"
LIMIT: Final = "kube_pod_resource_limit"
_HELP: Final = {
    REQUEST: "What a pod requests of a resource, on its node or of one",
    LIMIT: "What a pod may take of a resource at most, on its node or of one",
}
_PODS_AT_ONCE: Final = 200
_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def pod_resources_route(pods: Callable[[], Iterable[Pod]]) -> web.RouteDef:
    """`pods` are those that have not ended; none while another process leads."""

    async def answer(_: web.Request) -> web.Response:
        lines: dict[str, list[str]] = {REQUEST: [], LIMIT: []}
        left = iter(list(pods()))
        while piece := list(islice(left, _PODS_AT_ONCE)):
            for pod in piece:
                _tell(pod, lines)
            await asyncio.sleep(0)
        body = "".join(_family(name, found) for name, found in lines.items() if found)
        return web.Response(body=body.encode(), headers={"Content-Type": _TYPE})

    return web.get("/metrics/resources", answer)


def _tell(pod: Pod, lines: dict[str, list[str]]) -> None:
    """Nothing of a pod whose amounts cannot be read."""
    try:
        amounts = {REQUEST: pod_requests(pod), LIMIT: pod_limits(pod)}
    except QuantityError:
        return
    of_pod = (
        f'namespace="{_escaped(pod.namespace)}",node="{_escaped(pod.spec.node_name)}",'
        f'pod="{_escaped(pod.name)}",priority="{pod.spec.priority}",'
    )
    scheduler = f'scheduler="{_escaped(pod.spec.scheduler_name)}"'
    for name, of_resource in amounts.items():
        lines[name] += _samples(name, of_pod, scheduler, of_resource)


def _samples(name: str, of_pod: str, scheduler: str, amounts: Mapping[str, int]) -> Iterator[str]:
    for resource, amount in sorted(amounts.items()):
        if not amount:
            continue
        labels = f'{of_pod}resource="{_escaped(resource)}",{scheduler},unit="{_unit(resource)}"'
        value = amount / 1000 if resource == CPU else amount
        yield f"{name}{{{labels}}} {value:.12g}\n"


def _unit(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _escaped(value: str) -> str:
    """The API server takes any text for some of these, such as schedulerName."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _family(name: str, lines: list[str]) -> str:
    return f"# HELP {name} {_HELP[name]}\n# TYPE {name} gauge\n{''.join(lines)}"
