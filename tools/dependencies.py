"""What Lowtide needs at run time, with versions and licences, as the packages themselves say.

`make docs-files` writes docs/dependencies.md, `make sbom` dist/lowtide.cdx.json (CycloneDX)."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dependencies.md"
SBOM = ROOT / "dist" / "lowtide.cdx.json"
ITSELF = "lowtide"
# The image's, so that the list is the same wherever it is made.
ENVIRONMENT = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}
# What is said in other words than SPDX's.
_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
_INTRODUCTION = """\
# Dependencies

Made by `make docs-files`; a test compares it. What an installation without extras brings along, in
the versions of `constraints.txt`, with the licences that the packages state. `make sbom` writes the
same as an SBOM (CycloneDX, JSON) to `dist/`. Besides these there is Python itself (PSF-2.0), and in
the image what `python:3.11-slim` holds.

| package | version | licence | needed by |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    licence: str  # an SPDX expression
    needs: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{canonicalize_name(self.name)}@{self.version}"


def packages() -> dict[str, Package]:
    """Lowtide itself and all that it needs, by canonical name."""
    found: dict[str, Package] = {}
    wanted = [ITSELF]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = _package(distribution(name))
            wanted += found[name].needs
    return dict(sorted(found.items()))


def _package(installed: Distribution) -> Package:
    needs = (Requirement(text) for text in installed.requires or ())
    return Package(
        name=installed.metadata["Name"],
        version=installed.version,
        licence=licence_of(installed.metadata["Name"], installed.metadata),
        needs=tuple(
            sorted(
                canonicalize_name(each.name)
                for each in needs
                if each.marker is None or each.marker.evaluate(ENVIRONMENT)
            )
        ),
    )


def licence_of(name: str, metadata: Any) -> str:
    """The expression; else what older fields say, several of which are a choice."""
    stated = metadata.get("License-Expression")
    if stated:
        return str(stated)
    classified = [
        each for each in metadata.get_all("Classifier") or () if each.startswith("License ::")
    ]
    said = classified or [metadata.get("License") or ""]
    known = set(_SPDX.values())
    expressions = sorted(_SPDX.get(each, each) for each in said)
    unknown = [each for each in expressions if each not in known]
    if unknown:
        raise ValueError(f"{name} states its licence as {unknown[0]!r}; add what that is in SPDX")
    return " OR ".join(expressions)


def page() -> str:
    found = packages()
    rows = [
        f"| {each.name} | {each.version} | {each.licence} | {', '.join(_needed_by(key, found))} |\n"
        for key, each in found.items()
        if key != ITSELF
    ]
    return _INTRODUCTION + "".join(rows)


def _needed_by(key: str, found: Mapping[str, Package]) -> Iterator[str]:
    return (each.name for each in found.values() if key in each.needs)


def sbom() -> dict[str, Any]:
    found = packages()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(found[ITSELF]), "type": "application"}},
        "components": [_component(each) for key, each in found.items() if key != ITSELF],
        "dependencies": [
            {"ref": each.purl, "dependsOn": [found[key].purl for key in each.needs]}
            for each in found.values()
        ],
    }


def _component(package: Package) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "licenses": [_licence(package.licence)],
        "purl": package.purl,
    }


def _licence(expression: str) -> dict[str, Any]:
    if re.search(r" (AND|OR|WITH) ", expression):
        return {"expression": expression}
    return {"license": {"id": expression}}


def main(wanted: str) -> int:
    match wanted:
        case "page":
            PAGE.write_text(page())
        case "sbom":
            SBOM.parent.mkdir(exist_ok=True)
            SBOM.write_text(json.dumps(sbom(), indent=2) + "\n")
            print(SBOM.relative_to(ROOT))
        case _:
            print(f"must be page or sbom, not {wanted!r}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
