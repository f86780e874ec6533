"""Scenarios from files: JSON lines (gzip too), or one YAML file of ordinary manifests."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowtide.config.errors import ConfigError
from lowtide.config.yaml_document import read_documents
from lowtide.scenario.scenario import Scenario, ScenarioError, scenario_from

_SCENARIO_KEYS = {"pod", "scenario"}
_LIST_OF_KIND = {"Node": "nodes", "Pod": "pods"}


def read_scenarios(path: Path) -> Iterator[Scenario | ScenarioError]:
    """One after the other; what cannot be read comes as an error in its place."""
    if path.name.endswith((".yaml", ".yml")):
        yield from _from_yaml(path)
    else:
        yield from _from_json_lines(path)


def _from_json_lines(path: Path) -> Iterator[Scenario | ScenarioError]:
    opened = gzip.open(path, "rt") if path.name.endswith(".gz") else path.open()  # noqa: SIM115
    with opened as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                yield scenario_from(json.loads(line), name=where)
            except json.JSONDecodeError as error:
                yield ScenarioError(f"{where}: not JSON: {error.msg} at column {error.colno}")
            except ScenarioError as error:
                yield ScenarioError(f"{where}: {error}")


def _from_yaml(path: Path) -> Iterator[Scenario | ScenarioError]:
    try:
        documents = [document.data for document in read_documents(path.read_text(), file=path.name)]
    except ConfigError as error:
        yield ScenarioError(str(error))
        return
    cluster: dict[str, Any] = {"nodes": [], "pods": []}
    pending: list[dict[str, Any]] = []
    for number, data in enumerate(_unlisted(documents)):
        where = f"{path.name}: document {number + 1}"
        kind = data.get("kind")
        if kind is None and _SCENARIO_KEYS & data.keys():
            yield _one(data, where)
        elif kind is None and "readings" in data:
            cluster["readings"] = data["readings"]
        elif kind == "KubeSchedulerConfiguration":
            cluster["config"] = data
        elif kind == "Deployment":
            pending.append(_pod_of_deployment(data))
        elif kind == "Pod" and not (data.get("spec") or {}).get("nodeName"):
            pending.append(data)
        elif kind in _LIST_OF_KIND:
            cluster[_LIST_OF_KIND[kind]].append(data)
        else:
            known = "Node, Pod, Deployment, KubeSchedulerConfiguration"
            yield ScenarioError(f"{where}: kind {kind!r} is not read here; {known} are")
    for pod in pending:
        meta = pod.get("metadata") or {}
        name = f"{meta.get('namespace', 'default')}/{meta.get('name', '')}"
        yield _one({**cluster, "pod": pod}, name)


def _one(data: dict[str, Any], where: str) -> Scenario | ScenarioError:
    try:
        return scenario_from(data, name=where)
    except ScenarioError as error:
        return error


def _unlisted(documents: list[Any]) -> Iterator[dict[str, Any]]:
    for data in documents:
        if isinstance(data, dict) and data.get("kind") == "List":
            yield from _unlisted(data.get("items") or [])
        elif isinstance(data, dict):
            yield data


def _pod_of_deployment(deployment: dict[str, Any]) -> dict[str, Any]:
    """The pod that the Deployment's controllers would make, named after it."""
    template = (deployment.get("spec") or {}).get("template") or {}
    meta = deployment.get("metadata") or {}
    return {
        "metadata": {
            **(template.get("metadata") or {}),
            "name": meta.get("name", ""),
            "namespace": meta.get("namespace", "default"),
        },
        "spec": template.get("spec") or {},
    }
