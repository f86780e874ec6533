"""Writes docs/configuration.md out of the code: the fields of a configuration with the sentences
below them, the built-in plugins, and their args. Run by `make docs-files`."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from lowtide.config.extender_settings import ExtenderSettings
from lowtide.config.not_acted_on import EACH, NOT_ACTED_ON
from lowtide.config.types import EXTENSION_POINTS, KubeSchedulerConfiguration, Plugins, PluginSet
from lowtide.framework.registry import BuiltIn
from lowtide.plugins import BUILT_IN
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

# From here on a bound is that of the number's size, and nothing to tell of.
_LARGE = 2**31 - 1
_INTRODUCTION = f"""\
# Configuration

Made out of the code by `make docs-files`; a test compares it.

A `KubeSchedulerConfiguration`, as kube-scheduler reads it, given by `--config`: YAML or JSON, also
inside a ConfigMap of a manifest. What is not known here is rejected, with file, line, path and what
would be right. `lowtide config validate FILE` says what is wrong, `lowtide config show FILE` what
runs where. `--help` lists each command's flags. If a flag and the file set the same
thing, the flag counts.

Times are written `15s`, `1m30s` or `50ms`. `a.b` is the field `b` in the mapping `a`, `a[].b` that
of each entry of the list `a`.

```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: lowtide
    plugins:
      score: {{enabled: [{{name: NetworkTraffic, weight: {RECOMMENDED_WEIGHT}}}]}}
    pluginConfig:
      - name: NetworkTraffic
        args: {{prometheusAddress: "http://prometheus.monitoring:9090"}}
```
"""
_WARNINGS = """\
## What is accepted with a warning

- The fields that are said to be *not acted on* above, where their value asks for something else
  than what is done.
- `v1beta1`, `v1beta2` and `v1beta3`, read as `v1`.
- The args of earlier NetworkTraffic plugins
  ([which](network-traffic.md#the-spellings-of-earlier-plugins)); the warning prints today's.
- Flags of kube-scheduler's that [have no counterpart](scheduler.md#signals-and-flags).
- In the extender: `extenders`, and default plugins that kube-scheduler runs already
  ([why](extender.md)).

A plugin that does not exist is rejected where it is enabled or given args, and ignored where it is
only disabled.
"""
_PLUGINS = """\
## The plugins

In the order in which they run by default. A plugin that is not on by default has to be enabled, at
`multiPoint` or where it is to run. Of scores, each is multiplied by its weight and all are added
up.

| plugin | by default | weight | extension points | what it does |
|---|---|---|---|---|
"""
_EXTENDER = """\
## Extender

No plugin: an entry `Extender` in a profile's `pluginConfig` says how
[`lowtide extender`](extender.md) answers by that profile. The other modes check it and
pass it over.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One field: its path in the file, and what there is to say of it."""

    path: str
    kind: str
    default: str
    bounds: str
    sentence: str


def page() -> str:
    parts = [_INTRODUCTION, "## The file\n\n" + _table(rows_of(KubeSchedulerConfiguration))]
    parts += [_points(), _WARNINGS, _PLUGINS + "".join(map(_plugin_line, BUILT_IN))]
    parts += [
        f"## {row.name}\n\n{_also_called(row)}{_table(rows_of(row.plugin.args))}"
        for row in BUILT_IN
        if hasattr(row.plugin, "args")
    ]
    parts.append(f"{_EXTENDER}\n{_table(rows_of(ExtenderSettings))}")
    return "\n".join(parts)


def rows_of(struct: type[msgspec.Struct], path: str = "") -> Iterator[Row]:
    """The fields of a struct, and below each those of the struct that it holds."""
    sentences = _sentences(struct)
    for field in types.type_info(struct).fields:  # type: ignore[attr-defined]
        here = f"{path}{field.encode_name}"
        sentence, _, bounds = sentences[field.name].partition("Bounds: ")
        kind = _without_none(field.type)
        yield Row(
            here,
            _kind_text(kind),
            _default_text(field),
            bounds.rstrip(".") or _bounds_of(kind),
            f"{sentence.strip()}{_not_acted_on(here)}",
        )
        yield from _below(kind, here)


def _below(kind: types.Type, path: str) -> Iterator[Row]:
    if isinstance(kind, types.VarTupleType | types.ListType):
        kind, path = kind.item_type, f"{path}[]"
    if not isinstance(kind, types.StructType) or _is_of_kubernetes(kind.cls):
        return
    if kind.cls is Plugins:
        yield from rows_of(PluginSet, f"{path}.POINT.")
    else:
        yield from rows_of(kind.cls, f"{path}.")


def _is_of_kubernetes(struct: type) -> bool:
    """Its own reference says what it holds."""
    return any(each.__module__.startswith("lowtide.objects.") for each in struct.__mro__)


@cache
def _sentences(struct: type) -> dict[str, str]:
    """The string below each field; a field without one is a mistake."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        text = _string(below)
        if text is None and struct is not Plugins:
            raise ValueError(f"{struct.__name__}.{field.target.id} has no sentence below it")
        found[field.target.id] = " ".join((text or "").split())
    return found


def _string(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        value = node.value.value
        return value if isinstance(value, str) else None
    return None


def _without_none(kind: types.Type) -> types.Type:
    if isinstance(kind, types.UnionType):
        return next(each for each in kind.types if not isinstance(each, types.NoneType))
    return kind


def _kind_text(kind: types.Type) -> str:
    match kind:
        case types.Metadata():
            return "time" if "duration" in (kind.extra or {}) else "string or number"
        case types.VarTupleType() | types.ListType():
            return f"list of {_kind_text(kind.item_type)}s"
        case types.LiteralType():
            return ", ".join(f"`{value}`" for value in kind.values)
        case types.DictType() if isinstance(kind.value_type, types.StrType):
            return "mapping to strings"
    names = {
        types.BoolType: "bool",
        types.BytesType: "base64",
        types.DictType: "mapping",
        types.FloatType: "number",
        types.IntType: "integer",
        types.StrType: "string",
        types.StructType: "mapping",
    }
    return names[type(kind)]


def _bounds_of(kind: types.Type) -> str:
    if not isinstance(kind, types.IntType):
        return ""
    least = kind.ge if kind.ge is not None and kind.ge > -_LARGE else None
    most = kind.le if kind.le is not None and kind.le < _LARGE else None
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"at least {least}" if least is not None else ""


def _default_text(field: types.Field) -> str:
    if field.required:
        return "must be given"
    if field.default is msgspec.NODEFAULT:
        return ""
    kind, value = _without_none(field.type), field.default
    if isinstance(value, msgspec.Struct) or value in (None, "", b"", ()):
        return ""
    if isinstance(kind, types.Metadata) and "duration" in (kind.extra or {}):
        return f"`{_time_text(value)}`"
    return f"`{_yaml_text(msgspec.to_builtins(value))}`"


def _time_text(seconds: float) -> str:
    return f"{seconds:g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"


def _yaml_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(_yaml_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_yaml_text(each)}' for key, each in value.items())}}}"
    return str(value)


def _not_acted_on(path: str) -> str:
    for row in NOT_ACTED_ON:
        if ".".join(row.path).replace(f".{EACH}", "[]") == path:
            return f" *Not acted on: {row.instead}.*"
    return ""


def _table(rows: Iterator[Row]) -> str:
    lines = ["| field | type | default | bounds | meaning |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (f"`{row.path}`", row.kind, row.default, row.bounds, row.sentence)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _points() -> str:
    points = ", ".join(f"`{point}`" for point in EXTENSION_POINTS)
    return (
        "`POINT` is `multiPoint`, for every point at which a plugin does something, or one of "
        f"{points}. What is said at a point goes before what is said at `multiPoint`.\n"
    )


def _plugin_line(row: BuiltIn) -> str:
    points = ", ".join(f"`{point}`" for point in EXTENSION_POINTS if row.implements(point))
    name = f"[{row.name}](#{row.name.lower()})" if hasattr(row.plugin, "args") else row.name
    cells = (name, "on" if row.is_default else "off", _weight(row), points, _purpose(row))
    return "| " + " | ".join(cells) + " |\n"


def _weight(row: BuiltIn) -> str:
    if not row.implements("score"):
        return ""
    return str(row.weight or 1)


def _purpose(row: BuiltIn) -> str:
    """The first paragraph of the plugin's module, which begins with its name."""
    module = inspect.getmodule(row.plugin)
    first, _, _ = (inspect.getdoc(module) or "").partition("\n\n")
    name, _, purpose = " ".join(first.split()).partition(": ")
    if name != row.name or not purpose:
        raise ValueError(f'the module of {row.name} must begin with "{row.name}: what it does."')
    return f"{purpose[0].upper()}{purpose[1:]}"


def _also_called(row: BuiltIn) -> str:
    return (
        f"Also called {', '.join(f'`{name}`' for name in row.aliases)}.\n\n" if row.aliases else ""
    )


def main() -> int:
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
