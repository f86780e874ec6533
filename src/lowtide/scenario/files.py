"""Reads scenarios from files: JSON lines, also gzipped under any name, or YAML manifests."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from lowtide.config.errors import ConfigError
from lowtide.config.yaml_document import read_documents
from lowtide.scenario.scenario import Scenario, ScenarioError, scenario_from

_SCENARIO_KEYS = {"pod", "scenario"}
_GZIP_MAGIC = b"\x1f\x8b"
# Limits, because a few kilobytes of gzip can expand to gigabytes, and `{}` takes a hundred times
# its length in memory.
_MOST_MIB_A_LINE = 64
_MOST_PARTS_A_LINE = 1_000_000

_RECORDING = "lowtide recording"  # the `format` in the first line of a recording


def read_scenarios(path: Path) -> Iterator[Scenario | ScenarioError]:
    """Yield the scenarios of a file in order. A scenario that cannot be read yields an error."""
    is_yaml = path.name.endswith((".yaml", ".yml"))
    is_empty = True
    try:
        for each in _from_yaml(path) if is_yaml else _from_json_lines(path):
            is_empty = False
            yield each
        if is_empty:
            yield ScenarioError(f"{path.name}: contains no scenario")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        yield ScenarioError(f"{path.name}: cannot be read: {error}")


def _from_json_lines(path: Path) -> Iterator[Scenario | ScenarioError]:
    is_gzipped = path.name.endswith(".gz") or _begins_as_gzip(path)
    opened = gzip.open(path) if is_gzipped else path.open("rb")  # noqa: SIM115
    with opened as lines:
        for number in count(1):
            read = lines.readline(_MOST_MIB_A_LINE * 2**20 + 1)
            line = read.strip()
            where = f"{path.name}:{number}"
            if len(read) > _MOST_MIB_A_LINE * 2**20:
                text = f"is longer than {_MOST_MIB_A_LINE} MiB, the limit for a line"
                yield ScenarioError(f"{where}: {text}")
                return
            if not read:
                return
            if not line:
                continue
            try:
                data = _parsed(line, where)
                if isinstance(data, dict) and data.get("format") == _RECORDING:
                    yield ScenarioError(f"{path.name} is a recording: use lowtide replay {path}")
                    return
                yield scenario_from(data, name=where)
            except RecursionError:
                yield ScenarioError(f"{where}: nested too deeply")
            except ScenarioError as error:
                has_place = str(error).startswith(where)  # a recorded case begins with its id
                yield error if has_place else ScenarioError(f"{where}: {error}")


def _begins_as_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


def _parsed(line: bytes, where: str) -> Any:
    if line.count(b"{") + line.count(b"[") > _MOST_PARTS_A_LINE:
        text = f"has more than {_MOST_PARTS_A_LINE} objects and lists, the limit for a line"
        raise ScenarioError(f"{where}: {text}")
    try:
        return json.loads(line.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at column {error.colno}"
    except ValueError as error:  # not UTF-8, or a number of thousands of digits
        problem = str(error)
    raise ScenarioError(f"{where}: not JSON: {problem}")


def _from_yaml(path: Path) -> Iterator[Scenario | ScenarioError]:
    try:
        documents = [document.data for document in read_documents(path.read_text(), file=path.name)]
    except ConfigError as error:
        yield ScenarioError(str(error))
        return
    manifests = _Manifests()
    for number, data in enumerate(_unlisted(documents), start=1):
        manifests.add(data, f"{path.name}: document {number}")
    found = [*manifests.found, *manifests.scenarios()]
    if not found:
        hint = "add a Pod without spec.nodeName or a Deployment"
        found = [ScenarioError(f"{path.name}: no pod to place; {hint}")]
    yield from found


@dataclass(frozen=True, slots=True)
class _NoList:
    """The `items` of a List that are not a list."""

    items: object


class _Manifests:
    """Sorts the documents of a file into the cluster and the pods to place on it."""

    def __init__(self) -> None:
        self.found: list[Scenario | ScenarioError] = []  # whole scenarios, and errors
        self._cluster: dict[str, Any] = {"nodes": [], "pods": []}
        self._pending: list[dict[str, Any]] = []

    def add(self, data: Any, where: str) -> None:
        if isinstance(data, _NoList):
            text = f"{where}: items must be a list, not {type(data.items).__name__}"
            self.found.append(ScenarioError(text))
            return
        if not isinstance(data, dict):
            text = f"{where}: a manifest must be an object, not {type(data).__name__}"
            self.found.append(ScenarioError(text))
            return
        match data.get("kind"):
            case None if _SCENARIO_KEYS & data.keys():
                self.found.append(_one(data, where))
            case None if "readings" in data:
                self._cluster["readings"] = data["readings"]
            case "KubeSchedulerConfiguration":
                self._cluster["config"] = data
            case "Deployment":
                self._pending.append(_pod_of_deployment(data))
            case "Pod" if not _part(data, "spec").get("nodeName"):
                self._pending.append(data)
            case "Pod":
                self._cluster["pods"].append(data)
            case "Node":
                self._cluster["nodes"].append(data)
            case kind:
                known = "Node, Pod, Deployment, KubeSchedulerConfiguration"
                text = f"{where}: kind {kind!r} is not supported; supported are {known}"
                self.found.append(ScenarioError(text))

    def scenarios(self) -> Iterator[Scenario | ScenarioError]:
        for pod in self._pending:
            meta = _part(pod, "metadata")
            name = f"{meta.get('namespace', 'default')}/{meta.get('name', '')}"
            yield _one({**self._cluster, "pod": pod}, name)


def _one(data: dict[str, Any], where: str) -> Scenario | ScenarioError:
    try:
        return scenario_from(data, name=where)
    except ScenarioError as error:
        return error


def _unlisted(documents: list[Any]) -> Iterator[Any]:
    for data in documents:
        if isinstance(data, dict) and data.get("kind") == "List":
            items = data.get("items") or []
            yield from _unlisted(items) if isinstance(items, list) else [_NoList(items)]
        elif data is not None:
            yield data


def _pod_of_deployment(deployment: dict[str, Any]) -> dict[str, Any]:
    """The pod that the Deployment would create, but with the Deployment's own name."""
    template = _part(_part(deployment, "spec"), "template")
    meta = _part(deployment, "metadata")
    return {
        "metadata": {
            **_part(template, "metadata"),
            "name": meta.get("name", ""),
            "namespace": meta.get("namespace", "default"),
        },
        "spec": template.get("spec") or {},
    }


def _part(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The object at the key; empty if it is not an object, which decoding reports."""
    part = data.get(key)
    return part if isinstance(part, dict) else {}
