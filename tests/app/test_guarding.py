"""Every route of each mode's server beyond loopback, and who may ask for it: strangers, known users
with permission to one thing or another, by token or by certificate, and this machine."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from tests.app.conftest import NOW
from tests.server.conftest import tls_files, write_pair

from lowtide.app.beside import BesideParts
from lowtide.app.clocks import steady_clock
from lowtide.app.extender import ExtenderApp, ExtenderParts
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.app.scheduler import SchedulerApp, SchedulerParts
from lowtide.app.shadow import ShadowApp
from lowtide.config.load import LoadedConfig, load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built
from lowtide.kube.errors import KubeError
from lowtide.kube.kubeconfig import plain_access
from lowtide.localcluster import LocalCluster
from lowtide.server.audiences import AUDIENCES
from lowtide.server.debug import debug_routes
from lowtide.server.http import Drain, Server
from lowtide.server.serving import Serving
from lowtide.testing import ManualClock

pytestmark = pytest.mark.timeout(60)

App = SchedulerApp | ExtenderApp | ShadowApp
Paths = frozenset[str]
Let = Mapping[str, Paths]  # by who asks, those that are not rejected

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
VERBS = frozenset(
    {
        *(f"/scheduler/{verb}" for verb in ("filter", "prioritize", "preempt", "bind")),
        "/scheduler/preemption",
        "/{path:.*}",  # says which paths there are
    }
)
PUBLIC = {"scheduler": HEALTH, "shadow": HEALTH, "extender": HEALTH | VERBS}
PINGS = frozenset({"/healthz/ping", "/livez/ping", "/metrics"})
GRANTED = {
    "scheduler": PINGS | {"/readyz/shutdown", "/readyz/sched-handler-sync", "/metrics/resources"},
    "shadow": PINGS | {"/readyz/cluster"},
    "extender": {
        *("/healthz/ping", "/livez/plugins", "/metrics"),
        *(f"/readyz/{check}" for check in ("cluster", "plugins", "readings", "running")),
    },
}


@dataclass(frozen=True, slots=True)
class Who:
    """Somebody who asks: from where, with which token, and with a certificate of which name."""

    host: str = "192.0.2.7"
    token: str = ""
    certificate: str = ""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Of his connection, as far as handlers look at who asks."""
        if name == "peername":
            return self.host, 40000
        if name == "peercert" and self.certificate:
            return {"subject": ((("commonName", self.certificate),),)}
        return default


ASKING = {
    "a stranger": Who(),
    "somebody with a token that is nobody's": Who(token="nobodys"),
    "a scraper": Who(token="scraper"),
    "a viewer": Who(token="viewer"),
    "this machine": Who(host="127.0.0.1"),
}
CERTIFIED = {
    "kube-scheduler": Who(certificate="kube-scheduler"),
    "a scraper with a certificate": Who(certificate="scraper"),
    "a viewer with a certificate": Who(certificate="viewer"),
}


async def review(request: web.Request) -> web.Response:
    """The scraper may get every path but /lowtide, the viewer that one alone."""
    spec = (await request.json())["spec"]
    if "token" in spec:
        is_known = spec["token"] in ("scraper", "viewer")
        user = {"username": spec["token"], "groups": []}
        return web.json_response({"status": {"authenticated": is_known, "user": user}})
    is_the_page = spec["nonResourceAttributes"]["path"] == "/lowtide"
    may = {"viewer": is_the_page, "scraper": not is_the_page}
    return web.json_response({"status": {"allowed": may.get(spec["user"], False)}})


@asynccontextmanager
async def beyond_loopback(folder: Path) -> AsyncIterator[Serving]:
    reviewing = Server([web.post("/{tail:.*}", review)], port=0)
    await reviewing.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "a", "cluster": {"server": reviewing.address.url}}],
                "users": [{"name": "a", "user": {}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "current-context": "a",
            }
        )
    )
    try:
        yield Serving(
            bind_address="0.0.0.0",
            port=0,
            authentication_kubeconfig=kubeconfig,
            authorization_kubeconfig=kubeconfig,
        )
    finally:
        await reviewing.stop()


def make_app(mode: str, cluster: LocalCluster, serving: Serving) -> App:
    loaded = a_config()

    def build(binder: Binder) -> Built:
        return make_registry({}).build(loaded, {Binder: binder})

    times = {"clock": steady_clock(), "wall_clock": ManualClock(NOW)}
    access = plain_access(cluster.url)
    if mode == "shadow":
        parts = BesideParts(access, **times)
        return ShadowApp(parts, build(NoBinder()).profiles, lambda difference: None, serving)
    if mode == "extender":
        return ExtenderApp(
            ExtenderParts(
                access=access,
                build=build,
                serving=serving,
                url_prefix="/scheduler",
                most_body_bytes=2**20,
                drain=Drain(),
                **times,
            )
        )
    return SchedulerApp(
        SchedulerParts(
            access=access,
            config=loaded.config,
            make_profiles=lambda binder: build(binder).profiles,
            serving=serving,
            **times,
        )
    )


def a_config() -> LoadedConfig:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [
            {
                "schedulerName": "lowtide",
                "pluginConfig": [{"name": "Extender", "args": {"bind": True}}],
            }
        ],
    }
    return load_config(json.dumps(config), file="test")


@asynccontextmanager
async def routes_of(mode: str, serving: Serving) -> AsyncIterator[list[web.RouteDef]]:
    """While it runs."""
    async with serving_on(mode, serving) as server:
        routes = server.routes
        assert all(isinstance(each, web.RouteDef) for each in routes)
        yield [each for each in routes if isinstance(each, web.RouteDef)]


@asynccontextmanager
async def serving_on(mode: str, serving: Serving) -> AsyncIterator[Server]:
    async with LocalCluster(clock=ManualClock(NOW)) as cluster:
        app = make_app(mode, cluster, serving)
        task = asyncio.create_task(app.run())
        try:
            async with asyncio.timeout(20):
                while app.server is None:
                    await asyncio.sleep(0)
            yield app.server
        finally:
            app.stop()
            with suppress(KubeError):  # of a shadow that had not seen the cluster yet
                await task


async def statuses(route: web.RouteDef, asking: Mapping[str, Who]) -> dict[str, int]:
    """Of the answers to who asks. By GET, which verbs reject only when they know who asks."""
    found = {}
    for name, who in asking.items():
        headers = {"Host": "localhost"}
        if who.token:
            headers["Authorization"] = f"Bearer {who.token}"
        request = make_mocked_request(
            "GET",
            route.path,
            headers=headers,
            match_info={"namespace": "default", "name": "web"},
            transport=who,
        )
        handler: Callable[[web.Request], Any] = route.handler
        found[name] = (await handler(request)).status
    return found


async def let_by(mode: str, serving: Serving, asking: Mapping[str, Who]) -> tuple[Let, Paths]:
    """Who is not rejected what; and what is for viewers."""
    async with routes_of(mode, serving) as routes, asyncio.timeout(30):
        answered = {each.path: await statuses(each, asking) for each in routes}
    let = {
        who: frozenset(path for path, found in answered.items() if found[who] not in (401, 403))
        for who in asking
    }
    shown = frozenset(answered) - PUBLIC[mode] - GRANTED[mode]
    assert {path.split("/")[1] for path in shown} == {"", "page", "api"}
    return let, shown


@pytest.mark.parametrize("mode", PUBLIC)
async def test_beyond_loopback_nobody_gets_more_than_the_table_says(
    mode: str, tmp_path: Path
) -> None:
    async with beyond_loopback(tmp_path) as serving:
        let, shown = await let_by(mode, serving, ASKING)
    assert let == {
        "a stranger": PUBLIC[mode],
        "somebody with a token that is nobody's": PUBLIC[mode],
        "a scraper": PUBLIC[mode] | GRANTED[mode],
        "a viewer": PUBLIC[mode] | shown,
        "this machine": PUBLIC[mode] | shown,
    }


@pytest.mark.parametrize("mode", PUBLIC)
async def test_a_ca_for_clients_closes_the_verbs_to_who_shows_no_certificate_and_nothing_else(
    mode: str, tmp_path: Path
) -> None:
    async with beyond_loopback(tmp_path) as serving:
        with_ca = replace(serving, client_ca=a_ca(tmp_path))
        let, shown = await let_by(mode, with_ca, ASKING | CERTIFIED)
    assert let == {
        "a stranger": HEALTH,
        "somebody with a token that is nobody's": HEALTH,
        "a scraper": HEALTH | GRANTED[mode],
        "a viewer": HEALTH | shown,
        "this machine": HEALTH | shown,
        "kube-scheduler": PUBLIC[mode],
        "a scraper with a certificate": PUBLIC[mode] | GRANTED[mode],
        "a viewer with a certificate": PUBLIC[mode] | shown,
    }


async def test_with_a_ca_for_clients_the_page_flag_opens_the_page_to_who_shows_a_certificate(
    tmp_path: Path,
) -> None:
    async with beyond_loopback(tmp_path) as serving:
        with_ca = replace(serving, client_ca=a_ca(tmp_path), has_page=True)
        let, shown = await let_by("scheduler", with_ca, ASKING | CERTIFIED)
        let_without, _ = await let_by("scheduler", replace(serving, has_page=True), ASKING)
    assert {who for who, paths in let.items() if shown <= paths} == {
        *("a viewer", "this machine"),
        *CERTIFIED,
    }
    assert {who for who, paths in let_without.items() if shown <= paths} == set(ASKING)


def a_ca(folder: Path) -> Path:
    files = tls_files(folder, "ca")
    write_pair(files, name="ca")
    return files.certificate


async def test_every_row_of_the_table_is_for_something() -> None:
    served = {each.path for each in debug_routes()}
    for mode in PUBLIC:
        async with routes_of(mode, Serving(port=0)) as routes:
            served |= {each.path for each in routes}
    assert [row for row in AUDIENCES if not any(matches(row, served))] == []


def matches(row: str, paths: set[str]) -> Iterator[bool]:
    for path in paths:
        yield path.startswith(row[:-1]) if row.endswith("*") else path == row


@pytest.mark.parametrize("mode", PUBLIC)
@pytest.mark.parametrize(
    ("headers", "rejected"),
    [
        pytest.param({}, set(), id="who is on this machine"),
        pytest.param({"Host": "evil.example"}, {403}, id="a web page by another name of ours"),
        pytest.param({"Origin": "http://evil.example"}, {403}, id="a web page of another site"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, {403}, id="what such a page loads"),
    ],
)
async def test_on_loopback_no_path_is_for_a_web_page_of_others(
    mode: str, headers: dict[str, str], rejected: set[int]
) -> None:
    statuses = set()
    async with serving_on(mode, Serving(port=0)) as server, aiohttp.ClientSession() as session:
        for route in server.routes:
            assert isinstance(route, web.RouteDef)
            path = re.sub("{.*?}", "x", route.path)
            async with session.get(f"{server.address.url}{path}", headers=headers) as response:
                statuses.add(response.status)
    assert statuses == rejected if rejected else 403 not in statuses
