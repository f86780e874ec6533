"""Finds the one KubeSchedulerConfiguration in a file: alone, among other manifests, or inside a
ConfigMap. Called by `load.load_config`."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lowtide.config.errors import ConfigError, value_text
from lowtide.config.yaml_document import Document, read_documents, read_embedded

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
_KINDS_SHOWN = 5

# Other values of a ConfigMap, such as a script or another program's file, are not parsed.
_LOOKS_LIKE_CONFIGURATION = re.compile(
    rf"""^[ \t]*["']?(kind["']?:\s*["']?{KIND}|apiVersion["']?:\s*["']?{re.escape(GROUP)}/)""",
    re.MULTILINE,
)


def find_configuration(text: str, *, file: str) -> Document:
    """Return the configuration's document. Raises ConfigError if there is not exactly one."""
    documents = read_documents(text, file=file)
    found = [candidate for document in documents for candidate in _candidates(document)]
    if len(found) > 1:
        lines = " and ".join(str(document.line(())) for document in found)
        raise ConfigError(
            [f"{file}: holds {len(found)} configurations, on lines {lines}; leave one in the file"]
        )
    if found:
        return found[0]
    if (
        len(documents) == 1
        and isinstance(documents[0].data, dict)
        and "kind" not in _header(documents[0].data)
    ):
        return documents[0]
    raise ConfigError([_nothing_found(documents, file)])


def _candidates(document: Document) -> Iterator[Document]:
    data = document.data
    if not isinstance(data, dict):
        return
    kind, api_version = data.get("kind"), data.get("apiVersion")
    if kind == KIND or (isinstance(api_version, str) and api_version.startswith(f"{GROUP}/")):
        yield document
    elif kind == "ConfigMap":
        yield from _inside_config_map(document)
    elif kind in ("List", "ConfigMapList") and isinstance(data.get("items"), list):
        for index, item in enumerate(data["items"]):
            yield from _candidates(document.part(("items", index), item))


def _inside_config_map(document: Document) -> Iterator[Document]:
    values = document.data.get("data")
    if not isinstance(values, dict):
        return
    for key, text in values.items():
        if not isinstance(text, str) or not _LOOKS_LIKE_CONFIGURATION.search(text):
            continue
        if document.problems:
            raise ConfigError([document.problem(p.path, p.text) for p in document.problems])
        for inner in read_embedded(document, ("data", key), text):
            yield from _candidates(inner)


def _header(data: dict[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("kind", "apiVersion") if data.get(key) is not None}


def _nothing_found(documents: Sequence[Document], file: str) -> str:
    wanted = f"expected a {KIND}, or a ConfigMap that holds one"
    if not documents:
        return f"{file}: is empty; {wanted}"
    if len(documents) > 1:
        kinds = ", ".join(_kind_text(document) for document in documents[:_KINDS_SHOWN])
        if len(documents) > _KINDS_SHOWN:
            kinds += f" and {len(documents) - _KINDS_SHOWN} more documents"
        return f"{file}: holds {kinds}; {wanted}"
    document = documents[0]
    if not isinstance(document.data, dict):
        return f"{document.where(())}: is {value_text(document.data)}; {wanted}"
    return document.problem(("kind",), f"is {value_text(document.data['kind'])}; {wanted}")


def _kind_text(document: Document) -> str:
    if not isinstance(document.data, dict):
        return value_text(document.data)
    return str(document.data.get("kind", "a mapping without kind"))
