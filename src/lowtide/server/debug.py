"""/debug: what the process does at the moment, for whoever develops or runs it.

`serving` adds these routes where a user asks for them and only loopback is served."""

import asyncio
import threading
import time
from collections.abc import Callable

from aiohttp import web

from lowtide.server.sampling import Stacks, collapsed_text, sample_stacks, top_text
from lowtide.server.stacks import stacks_text

_MAX_PROFILE_SECONDS = 60.0
_MAX_HZ = 1000.0
_FORMS: dict[str, Callable[[Stacks], str]] = {"collapsed": collapsed_text, "top": top_text}

_PAGE = """<!doctype html>
<title>Lowtide: debug</title>
<h1>Debug endpoints</h1>
<ul>
<li><a href="/debug/stacks">/debug/stacks</a>: where every task and thread is now
<li><a href="/debug/profile?seconds=5&amp;format=top">/debug/profile?seconds=5&amp;format=top</a>:
    the functions that most time goes into
<li><a href="/debug/profile?seconds=5&amp;hz=100">/debug/profile?seconds=5&amp;hz=100</a>:
    the same as collapsed stacks, one a line, for flame graphs
</ul>
"""


def debug_routes() -> list[web.RouteDef]:
    profiling = Profiling()
    return [
        web.get("/debug", _page),
        web.get("/debug/stacks", _stacks),
        web.get("/debug/profile", profiling.answer),
    ]


class Profiling:
    """Takes one profile at a time: two would measure each other."""

    def __init__(self) -> None:
        self._is_running = False

    async def answer(self, request: web.Request) -> web.Response:
        try:
            seconds = _number(request, "seconds", default=5.0, most=_MAX_PROFILE_SECONDS)
            hz = _number(request, "hz", default=100.0, most=_MAX_HZ)
            to_text = _form(request)
        except ValueError as failure:
            return web.Response(text=f"{failure}\n", status=400)
        if self._is_running:
            return web.Response(text="a profile is being taken; ask when it is done\n", status=409)
        self._is_running = True
        is_ended = threading.Event()
        try:
            stacks = await asyncio.to_thread(
                sample_stacks, seconds=seconds, hz=hz, is_ended=is_ended, clock=time.perf_counter
            )
        finally:
            is_ended.set()
            self._is_running = False
        return web.Response(text=to_text(stacks))


async def _page(_: web.Request) -> web.Response:
    return web.Response(text=_PAGE, content_type="text/html")


async def _stacks(_: web.Request) -> web.Response:
    return web.Response(text=stacks_text(asyncio.all_tasks()))


def _number(request: web.Request, name: str, *, default: float, most: float) -> float:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= most:
        raise ValueError(f"{name} is {text!r}; expected a number above 0 and up to {most:g}")
    return number


def _form(request: web.Request) -> Callable[[Stacks], str]:
    name = request.query.get("format", "collapsed")
    if name not in _FORMS:
        raise ValueError(f"format is {name!r}; expected {' or '.join(_FORMS)}")
    return _FORMS[name]
