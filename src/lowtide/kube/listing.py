"""Lists all objects of one kind once, page by page, for a look at a cluster that is not followed.

Called by app for the doctor; who has to keep up uses watch."""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from lowtide.kube.connection import Connection
from lowtide.kube.decoding import AnswerDecoder

OBJECTS_PER_PAGE: Final = 500

T = TypeVar("T")


class _PageMeta(msgspec.Struct):
    next_page: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _PageMeta = msgspec.field(default_factory=_PageMeta)
    items: list[T] | None = None


async def list_all(connection: Connection, path: str, kind: type[T]) -> list[T]:
    """KubeError when a page cannot be had."""
    decoder = AnswerDecoder(_Page[kind])  # type: ignore[valid-type]
    found: list[T] = []
    params: Mapping[str, str] = {"limit": str(OBJECTS_PER_PAGE)}
    while True:
        response = await connection.request("GET", path, params=params, attempts=2)
        page = decoder.decode(response.body, f"The list of {path}")
        found += page.items or []
        if not page.metadata.next_page:
            return found
        params = {**params, "continue": page.metadata.next_page}
