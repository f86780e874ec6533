"""Bytes for answers: objects, lists, watch lines and bookmarks, as JSON or as kubectl's tables.

An object version is encoded once and shared by every list and watch; ApiServer picks the form."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lowtide.localcluster.changes import Record
from lowtide.localcluster.documents import Json
from lowtide.localcluster.kinds import Kind
from lowtide.localcluster.tables import column_definitions, has_table, row

_TYPE_FIELDS = ("kind", "apiVersion")
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class PlainPresentation:
    """Ordinary JSON objects of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._head = f'{{"kind":"{kind.name}","apiVersion":"{kind.api_version}",'.encode()
        self._list_head = f'{{"kind":"{kind.name}List","apiVersion":"{kind.api_version}",'.encode()

    def single(self, record: Record) -> bytes:
        return self._head + self._body(record)

    def listing(self, records: Sequence[Record], metadata: Json) -> bytes:
        items = b",".join([b"{" + self._body(record) for record in records])
        return b"".join(
            (self._list_head, b'"metadata":', encoded(metadata), b',"items":[', items, b"]}")
        )

    def line(self, event_type: str, record: Record) -> bytes:
        return b"".join(
            (b'{"type":"', event_type.encode(), b'","object":', self.single(record), b"}\n")
        )

    def bookmark(self, version: int, annotations: Json | None = None) -> bytes:
        metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        item: Json = {
            "kind": self._kind.name,
            "apiVersion": self._kind.api_version,
            "metadata": metadata,
        }
        if self._kind.plural == "pods":
            item |= {"spec": {"containers": None}, "status": {}}
        return encoded({"type": "BOOKMARK", "object": item}) + b"\n"

    def _body(self, record: Record) -> bytes:
        """The object without its opening brace, kind and apiVersion: lists leave those out."""
        body = record.bodies.get(self._kind.api)
        if body is None:
            view = self._kind.from_stored(record.item)
            rest = {key: value for key, value in view.items() if key not in _TYPE_FIELDS}
            body = record.bodies[self._kind.api] = encoded(rest)[1:]
        return body


@dataclass(frozen=True, slots=True)
class TablePresentation:
    """kubectl's tables; `include_object` is None, Metadata or Object as in the request."""

    kind: Kind
    include_object: str
    clock: Callable[[], float]

    def single(self, record: Record) -> bytes:
        return encoded(self._table([record], {}))

    def listing(self, records: Sequence[Record], metadata: Json) -> bytes:
        return encoded(self._table(records, metadata))

    def line(self, event_type: str, record: Record) -> bytes:
        return encoded({"type": event_type, "object": self._table([record], {})}) + b"\n"

    def bookmark(self, version: int, annotations: Json | None = None) -> bytes:
        metadata: Json = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        return encoded({"type": "BOOKMARK", "object": self._table([], metadata)}) + b"\n"

    def _table(self, records: Sequence[Record], metadata: Json) -> Json:
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": column_definitions(self.kind.plural),
            "rows": [self._row(record) for record in records],
        }

    def _row(self, record: Record) -> Json:
        shown: Json = {"cells": row(self.kind.plural, record.item, self.clock())}
        if self.include_object == "Object":
            shown["object"] = self.kind.from_stored(record.item)
        elif self.include_object != "None":
            shown["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": record.item["metadata"],
            }
        return shown


Presentation = PlainPresentation | TablePresentation


def presentation(
    kind: Kind, accept: str, include_object: str, clock: Callable[[], float]
) -> Presentation:
    if "as=Table" in accept and has_table(kind.plural):
        return TablePresentation(kind, include_object, clock)
    return PlainPresentation(kind)
