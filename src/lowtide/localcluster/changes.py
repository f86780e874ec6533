"""Versions of objects and the steps between them: what the store keeps and watches are fed."""

from dataclasses import dataclass
from enum import Enum

from lowtide.localcluster.documents import Json


class ChangeType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Record:
    """One version of one object; `bodies` keeps its encoded forms for all who ask."""

    __slots__ = ("bodies", "item")

    def __init__(self, item: Json) -> None:
        self.item = item
        self.bodies: dict[str, bytes] = {}


@dataclass(slots=True)
class Change:
    version: int
    plural: str
    type: ChangeType
    current: Record | None
    previous: Record | None
    _departed: Record | None = None

    @property
    def departed(self) -> Record:
        """The previous object under the new version: what a watch that loses it is told."""
        if self._departed is None:
            assert self.previous is not None
            self._departed = Record(with_version(self.previous.item, self.version))
        return self._departed

    @property
    def item(self) -> Json:
        """The object after the change, or as it was last when it is gone."""
        return (self.current or self.departed).item


def with_version(item: Json, version: int) -> Json:
    return {**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}
