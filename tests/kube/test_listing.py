"""Lists that come in pages."""

import pytest
from tests.kube.conftest import ApiServer, document, status

from lowtide.kube.connection import Connection
from lowtide.kube.errors import ApiError, Unreadable
from lowtide.kube.listing import list_all
from lowtide.objects.node import Node

PATH = "/api/v1/nodes"


def page(*names: str, following: str = "") -> dict[str, object]:
    items = [{"metadata": {"name": name}} for name in names]
    return {"kind": "NodeList", "metadata": {"continue": following}, "items": items}


async def test_every_page_is_asked_for(server: ApiServer, connection: Connection) -> None:
    server.answers = [document(page("a", "b", following="next=")), document(page("c"))]
    nodes = await list_all(connection, PATH, Node)
    assert [node.name for node in nodes] == ["a", "b", "c"]
    assert [asked.query for asked in server.asked] == [
        {"limit": "500"},
        {"limit": "500", "continue": "next="},
    ]


async def test_a_list_without_items_is_empty(server: ApiServer, connection: Connection) -> None:
    server.answers = [document({"metadata": {}, "items": None})]
    assert await list_all(connection, PATH, Node) == []


async def test_what_is_forbidden_is_told(server: ApiServer, connection: Connection) -> None:
    server.answers = [status(403, "Forbidden", "nodes is forbidden")]
    with pytest.raises(ApiError, match="nodes is forbidden"):
        await list_all(connection, PATH, Node)


async def test_what_is_no_list_is_told(server: ApiServer, connection: Connection) -> None:
    server.answers = [document(["a"])]
    with pytest.raises(Unreadable, match="The list of /api/v1/nodes: Expected `object`"):
        await list_all(connection, PATH, Node)
