"""Reads YAML or JSON into plain data with line numbers, and reports duplicate keys.

Used for configurations, scenarios, simulations and kubeconfigs. The Document gives file and line
for error messages."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from lowtide.config.errors import ConfigError, Path, Problem, path_text
from lowtide.config.yaml_scalars import Scalar, plain_scalar

# Aliases can make a few lines stand for millions of values.
MOST_VALUES = 100_000
# After fixing this many problems, users check the file again anyway.
MOST_PROBLEMS = 100
# Reading YAML takes about one second per MiB, and about a hundred times its size in memory.
_MOST_MIB = 32

_PLAIN = "!plain"
_STRING = "tag:yaml.org,2002:str"
_MERGE_KEY = "<<"
_COLLECTION_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_SCALAR_TAGS = (_PLAIN, *(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")))


@dataclass(frozen=True, slots=True)
class Document:
    """A document or a part of one: plain data, and the line of each part in the file."""

    file: str
    data: Any
    path: Path  # of `data` itself: () for a whole file, ("data", key) for one inside a ConfigMap
    lines: dict[Path, int]
    block_lines: dict[Path, int]  # the first line of the content of each `|` block
    problems: tuple[Problem, ...]  # their paths are relative to `path`

    def line(self, path: Path) -> int:
        """Return the line of a value or, if the value is absent, of the nearest parent."""
        full = self.path + path
        while full and full not in self.lines:
            full = full[:-1]
        return self.lines.get(full, 1)

    def where(self, path: Path) -> str:
        """Format a place: `scheduler.yaml:12: profiles[0].schedulerName`."""
        place = f"{self.file}:{self.line(path)}"
        full = self.path + path
        return f"{place}: {path_text(full)}" if full else place

    def problem(self, path: Path, text: str) -> str:
        """Return the full sentence for one mistake."""
        return f"{self.where(path)}: {text}"

    def part(self, path: Path, data: Any) -> "Document":
        """Return a part of the data as a document of its own; its places in the file remain."""
        inside = tuple(
            Problem(problem.path[len(path) :], problem.text)
            for problem in self.problems
            if problem.path[: len(path)] == path
        )
        return Document(
            self.file, data, self.path + path, self.lines, self.block_lines, problems=inside
        )


def read_documents(text: str, *, file: str) -> tuple[Document, ...]:
    """Read all documents of a file, without empty ones.

    A no-break space, which text copied from web pages may contain, counts as a space."""
    if len(text) > _MOST_MIB * 2**20:
        raise ConfigError(
            [f"{file}: is longer than {_MOST_MIB} MiB, the limit for YAML files; split it"]
        )
    text = text.replace("\u00a0", " ")
    return tuple(_read(text, file=file, path=(), line_at=lambda line: line))


def read_embedded(outer: Document, path: Path, text: str) -> tuple[Document, ...]:
    """Read the documents inside a string of another document, with the outer file's lines."""
    first_line = outer.block_lines.get(outer.path + path)
    key_line = outer.line(path)

    def line_at(line: int) -> int:
        # Only a `|` block keeps its line breaks; for other strings, use the line of the key.
        return key_line if first_line is None else first_line + line - 1

    return tuple(_read(text, file=outer.file, path=outer.path + path, line_at=line_at))


def _read(text: str, *, file: str, path: Path, line_at: Callable[[int], int]) -> Iterator[Document]:
    try:
        for root in yaml.compose_all(_with_spaces(text), Loader=_Loader):
            if root is None or _is_empty(root):
                continue
            builder = _Builder(line_at)
            data = builder.build(root, path, builder.line(root))
            problems = tuple(Problem(p.path[len(path) :], p.text) for p in builder.problems)
            yield Document(file, data, path, builder.lines, builder.block_lines, problems)
    except yaml.YAMLError as error:
        raise ConfigError([_syntax_problem(error, file=file, path=path, line_at=line_at)]) from None
    except (_TooManyValuesError, RecursionError):
        inside = f"{path_text(path)}: " if path else ""
        raise ConfigError(
            [
                f"{file}:{line_at(1)}: {inside}is nested too deeply or holds more than "
                f"{MOST_VALUES} values; a configuration is far smaller"
            ]
        ) from None


def _with_spaces(text: str) -> str:
    # JSON may be indented with tabs, which YAML rejects. JSON strings cannot contain a raw tab.
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return text
    return text.replace("\t", " ")


def _is_empty(root: yaml.Node) -> bool:
    return isinstance(root, yaml.ScalarNode) and root.tag == _PLAIN and root.value == ""


def _syntax_problem(
    error: yaml.YAMLError, *, file: str, path: Path, line_at: Callable[[int], int]
) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = line_at(mark.line + 1 if mark is not None else 1)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    inside = f"{path_text(path)}: " if path else ""
    return f"{file}:{line}: {inside}is not valid YAML: {reason}"


class _TooManyValuesError(Exception):
    pass


class _Loader(yaml.SafeLoader):
    """Leaves unquoted scalars to `plain_scalar`, and stops at too many values before they take
    memory."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = 0

    def compose_document(self) -> yaml.Node | None:
        self._values = 0
        return super().compose_document()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._values += 1
        if self._values > 2 * MOST_VALUES:  # keys are nodes too
            raise _TooManyValuesError
        return super().compose_node(parent, index)

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


class _Builder:
    """Turns the nodes of one document into plain data and records the lines."""

    def __init__(self, line_at: Callable[[int], int]) -> None:
        self.lines: dict[Path, int] = {}
        self.block_lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._line_at = line_at
        self._open_nodes: set[int] = set()
        self._values = 0

    def build(self, node: yaml.Node, path: Path, line: int) -> Any:
        self._values += 1
        if self._values > MOST_VALUES or id(node) in self._open_nodes:
            raise _TooManyValuesError
        self.lines[path] = line
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _COLLECTION_TAGS:
            self._reject_tag(node, path)
        self._open_nodes.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [
                self.build(item, (*path, index), self.line(item))
                for index, item in enumerate(node.value)
            ]
        finally:
            self._open_nodes.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Scalar:
        if node.style == "|":
            self.block_lines[path] = self._line_at(node.start_mark.line + 2)
        if node.tag == _STRING:
            return str(node.value)
        if node.tag not in _SCALAR_TAGS:
            self._reject_tag(node, path)
            return str(node.value)
        value = plain_scalar(node.value)
        if isinstance(value, float) and not math.isfinite(value):
            self._note(
                Problem(path, f"must be a finite number or a quoted string, not {node.value}")
            )
            return 0
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        # Merged mappings come first, so that a key of this mapping wins, with its line.
        merged = self._merged(node, path)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                continue
            key = self._key(key_node, path)
            inner = (*path, key)
            line = self.line(key_node)
            if key in data:
                self._note(Problem(inner, f"is given again on line {line}; keep one"))
                continue
            data[key] = self.build(value_node, inner, line)
        return merged | data

    def _merged(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not _is_merge(key_node):
                continue
            several = isinstance(value_node, yaml.SequenceNode)
            for source in value_node.value if several else [value_node]:
                if isinstance(source, yaml.MappingNode):
                    merged = self.build(source, path, self.lines[path]) | merged
                else:
                    self._note(Problem(path, "merges a value with << that is not a mapping"))
        return merged

    def _key(self, node: yaml.Node, path: Path) -> str:
        """Keys become strings, as in JSON: an unquoted `on:` is the key "true"."""
        if not isinstance(node, yaml.ScalarNode):
            self._note(Problem(path, "has a key that is not a string"))
            return str(node.start_mark.line)
        value = self._scalar(node, path)
        return value if isinstance(value, str) else json.dumps(value)

    def _reject_tag(self, node: yaml.Node, path: Path) -> None:
        tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        self._note(Problem(path, f"has the YAML tag {tag}, which is not supported; remove it"))

    def _note(self, problem: Problem) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def line(self, node: yaml.Node) -> int:
        return self._line_at(node.start_mark.line + 1)


def _is_merge(key_node: yaml.Node) -> bool:
    return key_node.tag == _PLAIN and key_node.value == _MERGE_KEY
