"""NodeLabel: accepts only nodes that have a label, with any value or with a given one."""

import re
from collections.abc import Iterator

import msgspec

from lowtide.framework.log_words import LogsVerdicts
from lowtide.framework.plugin import NODE, Change, Nodes, Pod, PodRejection, Rejection
from lowtide.objects.matching import matches_all
from lowtide.objects.meta import LabelRequirement

_PREFIX = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?"
_PART = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"({_PREFIX}/)?{_PART}")
_VALUE = re.compile(rf"({_PART})?")


class NodeLabelArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    label: str = ""
    """The label's key; required."""
    value: str | None = None
    """The label's value, in quotes. Default: any value."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        key, equals, value = self.label.partition("=")
        if key.strip() and equals:
            yield (
                "label",
                f"must be the label's key alone, not {self.label!r}; "
                f'write label: {key.strip()} and value: "{value.strip()}"',
            )
        elif _KEY.fullmatch(self.label) is None:
            given = repr(self.label) if self.label else "empty"
            yield (
                "label",
                f"must be the key of the label that NodeLabel looks for, such as "
                f"example.com/disk, and is {given}",
            )
        if self.value is not None and _VALUE.fullmatch(self.value) is None:
            yield (
                "value",
                "must be what a label can have: at most 63 letters, digits, '-', '_' or '.', with "
                f"a letter or digit at both ends, not {self.value!r}",
            )


class NodeLabel(LogsVerdicts):
    name = "NodeLabel"
    # Any change of a node may change whether some node has the label, even a removal.
    retry_on = NODE
    args = NodeLabelArgs

    def __init__(self, args: NodeLabelArgs) -> None:
        if args.value is None:
            self._required = LabelRequirement(args.label, "Exists")
            self._in_words = args.label
        else:
            self._required = LabelRequirement(args.label, "In", [args.value])
            self._in_words = f"{args.label}={args.value}"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        if len(nodes) and not nodes.label_matches(self._required).any():
            return PodRejection(f"all node do not have label {self._in_words}")
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        lacking = ~nodes.label_matches(self._required)
        yield Rejection(lacking, f"node(s) did not have label {self._in_words}")

    def filter_log_lines(self, pod: Pod, nodes: Nodes) -> Iterator[str]:
        for name, has in zip(nodes.names, nodes.label_matches(self._required), strict=True):
            yield f"Node[ {name} ] Special Label Value: {'true' if has else 'false'}"

    def may_help(self, pod: Pod, change: Change) -> bool:
        return change.is_new(lambda node: matches_all([self._required], node.labels))
