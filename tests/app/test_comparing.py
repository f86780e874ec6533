from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest
from aiohttp import web
from tests.server.conftest import running

from lowtide.app.comparing import InMemory, ListedPod, compare, differences
from lowtide.cluster.state import ClusterState
from lowtide.kube.connection import Connection
from lowtide.kube.kubeconfig import plain_access
from lowtide.objects.node import Node
from lowtide.objects.pod import Pod
from lowtide.server.http import Server
from lowtide.testing import make_node, make_pod

Believed = Callable[[Sequence[Node], Sequence[ListedPod]], Iterator[str]]

NODES = [make_node("a", cpu="4"), make_node("b", cpu="4")]
PLACED = make_pod("web", cpu="1", on="a", scheduler_name="lowtide")
PENDING = make_pod("next", cpu="1", scheduler_name="lowtide")


@pytest.fixture
def state() -> ClusterState:
    made = ClusterState()
    for node in NODES:
        made.add_node(node)
    made.place(PLACED)
    return made


def found(
    state: ClusterState,
    nodes: Sequence[Node] = NODES,
    pods: Sequence[Pod] = (PLACED, PENDING),
    waiting: frozenset[str] = frozenset({PENDING.uid}),
) -> list[str]:
    return list(differences(state, waiting, {"lowtide"}, nodes, listed(*pods)))


def listed(*pods: Pod) -> list[ListedPod]:
    return [msgspec.json.decode(msgspec.json.encode(pod), type=ListedPod) for pod in pods]


def test_what_is_the_same_is_not_told(state: ClusterState) -> None:
    assert found(state) == []


@pytest.mark.parametrize(
    ("nodes", "pods", "want"),
    [
        pytest.param(
            NODES[:1],
            [PLACED],
            ["node b is believed to exist, and does not"],
            id="a node that is gone",
        ),
        pytest.param(
            [*NODES, make_node("c")],
            [PLACED],
            ["node c exists, and is not known"],
            id="a node that is new",
        ),
        pytest.param(
            [NODES[0], make_node("b", cpu="8")],
            [PLACED],
            ["node b is not as it is believed to be"],
            id="a node that has changed",
        ),
        pytest.param(
            NODES,
            [],
            ["pod default/web is believed to be on a node, and does not exist"],
            id="a pod that is gone",
        ),
        pytest.param(
            NODES,
            [make_pod("web", cpu="1", on="b", scheduler_name="lowtide")],
            ["pod default/web is on b, and believed to be on a"],
            id="a pod that is elsewhere",
        ),
        pytest.param(
            NODES,
            [PLACED, make_pod("db", on="b")],
            ["pod default/db is on b, and not known there"],
            id="a pod of somebody else",
        ),
        pytest.param(
            NODES,
            [PLACED, make_pod("lost", scheduler_name="lowtide")],
            ["pod default/lost is pending, and not in line"],
            id="a pod that nobody would place",
        ),
        pytest.param(
            NODES, [PLACED, make_pod("other", scheduler_name="other")], [], id="no pod of others"
        ),
    ],
)
def test_it_tells_of(
    state: ClusterState, nodes: Sequence[Node], pods: Sequence[Pod], want: list[str]
) -> None:
    assert found(state, nodes, pods) == want


def test_a_sum_that_drifted_is_told(state: ClusterState) -> None:
    state.requested("cpu")[0] += 5
    assert found(state) == ["node a: its pods request 1000 cpu, not 1005"]


async def _listed(request: web.Request) -> web.Response:
    return web.json_response({"items": []})


async def told(believed: Believed, between_looks: Callable[[], None]) -> list[str]:
    async def sleep(seconds: float) -> None:
        between_looks()

    server = Server([web.get("/api/v1/{kind}", _listed)], port=0)
    async with (
        running(server) as url,
        Connection(plain_access(url), lambda: 0.0) as connection,
    ):
        return await compare(connection, believed, sleep)


@pytest.mark.parametrize(
    ("looks", "want"),
    [
        pytest.param([["x", "y"], ["y", "z"]], ["y"], id="differs twice"),
        pytest.param([["x"], []], [], id="was on its way"),
        pytest.param([[]], [], id="does not differ, with one look"),
        pytest.param([[InMemory("x")]], ["x"], id="was added up wrongly, with one look"),
    ],
)
async def test_told_is_what(looks: list[list[str]], want: list[str]) -> None:
    left = iter(looks)
    assert await told(lambda nodes, pods: iter(next(left)), lambda: None) == want
    assert list(left) == []


async def test_a_sum_that_drifted_is_told_while_pods_come_and_go(state: ClusterState) -> None:
    """As it is at the last look. A second one is taken because of a node that is on its way."""
    state.requested("cpu")[0] += 5
    late = make_node("c")

    def believed(nodes: Sequence[Node], pods: Sequence[ListedPod]) -> Iterator[str]:
        return differences(state, (), {"lowtide"}, [*NODES, late], listed(PLACED))

    def meanwhile() -> None:
        state.place(make_pod("more", cpu="1", on="a"))
        state.add_node(late)

    assert await told(believed, meanwhile) == ["node a: its pods request 2000 cpu, not 2005"]
