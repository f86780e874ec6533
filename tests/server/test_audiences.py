import pytest
from aiohttp import web

from lowtide.server.audiences import AUDIENCES, Audience, audience_of
from lowtide.server.errors import ServerError
from lowtide.server.serving import Serving, make_server


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/readyz", Audience.EVERYBODY, id="by the path itself"),
        pytest.param("/readyz/cluster", Audience.GRANTED, id="by how it begins"),
        pytest.param("/api/nodes/{name}", Audience.VIEWERS, id="of a path with places in it"),
        pytest.param("/", Audience.VIEWERS, id="of the root, which is no beginning of others"),
    ],
)
def test_the_audience_is_known(path: str, want: Audience) -> None:
    assert audience_of(path) is want


@pytest.mark.parametrize("path", ["/secret", "/metricsx", "/readyzz", "/debugger"])
def test_a_path_that_is_not_in_the_table_is_not_served(path: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    with pytest.raises(ServerError) as rejected:
        make_server(Serving(port=0), [web.get(path, answer)])
    assert str(rejected.value) == (
        f"cannot serve {path}: the table of audiences does not say who may ask for it; "
        f"it has {', '.join(AUDIENCES)}"
    )
