"""Which objects are kept whole, and that none stays when it is gone."""

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.kube.whole_objects import WholeObjects
from lowtide.objects.events import Deleted
from lowtide.testing import ManualClock, make_node, make_pod

RAW = msgspec.Raw(b'{"kept": true}')
OURS = make_pod("ours", scheduler_name="lowtide")
THEIRS = make_pod("theirs", scheduler_name="other")
BOUND = make_pod("bound", on="a", scheduler_name="lowtide")


async def test_pods_to_place_are_kept_and_others_are_read() -> None:
    async def read(request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        if name == "theirs":
            return web.json_response({"read": name})
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    application = web.Application()
    application.router.add_get("/{path:.*}", read)
    async with TestServer(application) as served:
        access = plain_access(str(served.make_url("")))
        async with Connection(access, ManualClock()) as connection:
            whole = WholeObjects(connection, scheduler_names=["lowtide"], keeps_nodes=True)
            for pod in (OURS, THEIRS, BOUND):
                whole.keep(pod, RAW)
            assert await whole.pod(OURS) == RAW
            assert msgspec.json.decode(await whole.pod(THEIRS) or b"null") == {"read": "theirs"}
            assert await whole.pod(BOUND) is None
            whole.forget(Deleted(OURS))
            assert await whole.pod(OURS) is None


def test_nodes_are_kept_where_an_extender_is_sent_them() -> None:
    connection = Connection(plain_access("http://127.0.0.1:9"), ManualClock())
    sent, known = (
        WholeObjects(connection, scheduler_names=[], keeps_nodes=keeps) for keeps in (True, False)
    )
    for whole in (sent, known):
        whole.keep(make_node("a"), RAW)
    assert (sent.node("a"), known.node("a")) == (RAW, None)
    sent.forget(Deleted(make_node("a")))
    assert sent.node("a") is None
