"""Label and field selectors of list and watch requests, parsed once and asked per object.

Used by the store's lists and by every watch."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from lowtide.localcluster.documents import Json
from lowtide.localcluster.failures import bad_request

_FIELDS_OF_EVERY_KIND = {
    "metadata.name": "metadata.name",
    "metadata.namespace": "metadata.namespace",
}
# Of what has no space around it.
_SET_REQUIREMENT = re.compile(r"([^\s!=,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUALITY = re.compile(r"([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)")
_EXISTENCE = re.compile(r"(!?)\s*([^\s!=,()]+)")


class Operator(Enum):
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    path: tuple[str, ...]
    value: str
    is_equality: bool

    def matches(self, item: Json) -> bool:
        return (_field_text(item, self.path) == self.value) is self.is_equality


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind a request is about; namespace None means all namespaces."""

    namespace: str | None = None
    labels: tuple[LabelRequirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()

    def matches(self, item: Json) -> bool:
        metadata = item["metadata"]
        if self.namespace is not None and metadata.get("namespace") != self.namespace:
            return False
        if self.labels:
            labels = metadata.get("labels") or {}
            if not all(requirement.matches(labels) for requirement in self.labels):
                return False
        return all(requirement.matches(item) for requirement in self.fields)

    def is_whole(self) -> bool:
        return not self.labels and not self.fields


def parse_labels(text: str) -> tuple[LabelRequirement, ...]:
    if not text.strip():
        return ()
    return tuple(_label_requirement(part.strip()) for part in _parts(text))


def parse_fields(text: str, known: Mapping[str, str]) -> tuple[FieldRequirement, ...]:
    """`known` maps the field labels of a kind to dotted paths in the stored object."""
    if not text.strip():
        return ()
    return tuple(_field_requirement(part.strip(), known) for part in text.split(","))


def _parts(text: str) -> Iterator[str]:
    """Between the commas outside of parentheses."""
    held: list[str] = []
    for piece in text.split(","):
        held.append(piece)
        if "(" not in held[0] or ")" in piece:
            yield ",".join(held)
            held = []
    if held:
        yield ",".join(held)


def _label_requirement(text: str) -> LabelRequirement:
    if found := _SET_REQUIREMENT.fullmatch(text):
        values = frozenset(value.strip() for value in found[3].split(","))
        return LabelRequirement(found[1], Operator(found[2]), values)
    if found := _EQUALITY.fullmatch(text):
        operator = Operator.NOT_IN if found[2] == "!=" else Operator.IN
        return LabelRequirement(found[1], operator, frozenset([found[3]]))
    if found := _EXISTENCE.fullmatch(text):
        return LabelRequirement(found[2], Operator.ABSENT if found[1] else Operator.EXISTS)
    raise bad_request(
        f"unable to parse requirement {text!r} of the label selector: write key=value, key!=value, "
        "key in (a,b), key notin (a,b), key or !key"
    )


def _field_requirement(text: str, known: Mapping[str, str]) -> FieldRequirement:
    found = _EQUALITY.fullmatch(text)
    if not found:
        raise bad_request(f"invalid field selector {text!r}: write field=value or field!=value")
    path = _FIELDS_OF_EVERY_KIND.get(found[1]) or known.get(found[1])
    if path is None:
        raise bad_request(f"field label not supported: {found[1]}")
    return FieldRequirement(tuple(path.split(".")), found[3], found[2] != "!=")


def _field_text(item: Json, path: tuple[str, ...]) -> str:
    value: object = item
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        # The only boolean fields that can be selected are false when they are left out.
        return "false" if path[-1] in ("unschedulable", "hostNetwork") else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
