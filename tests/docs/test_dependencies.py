"""docs/dependencies.md is as it would be made now (`make docs-files` does it), of what
pyproject.toml and constraints.txt say; and so is the SBOM."""

import re
import tomllib
from email.message import Message

import pytest

from dependencies import ITSELF, PAGE, ROOT, licence_of, packages, page, sbom


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


def test_versions_are_those_of_the_constraints() -> None:
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    found = {each.name: each.version for key, each in packages().items() if key != ITSELF}
    assert found == {name: pinned.get(name) for name in found}


def test_what_lowtide_needs_itself_is_what_the_project_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[>=<; ]", text)[0].lower() for text in project["dependencies"]}
    assert set(packages()[ITSELF].needs) == named


def test_the_sbom_lists_every_package_once_with_a_licence_and_its_needs() -> None:
    made = sbom()
    components = [made["metadata"]["component"], *made["components"]]
    references = [each["bom-ref"] for each in components]
    assert sorted(references) == sorted(each.purl for each in packages().values())
    assert all(len(each["licenses"]) == 1 for each in components)
    assert [each["ref"] for each in made["dependencies"]] == sorted(references)
    assert {to for each in made["dependencies"] for to in each["dependsOn"]} <= set(references)


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        pytest.param(
            [("License-Expression", "0BSD"), ("License", "x")], "0BSD", id="an expression"
        ),
        pytest.param([("License", "MIT License")], "MIT", id="an older field"),
        pytest.param(
            [
                ("Classifier", "License :: OSI Approved :: MIT License"),
                ("Classifier", "License :: OSI Approved :: Apache Software License"),
            ],
            "Apache-2.0 OR MIT",
            id="a choice",
        ),
    ],
)
def test_a_licence_is_read_from(fields: list[tuple[str, str]], licence: str) -> None:
    assert licence_of("some", metadata(fields)) == licence


def test_a_licence_that_nobody_has_looked_at_is_rejected() -> None:
    with pytest.raises(ValueError, match="some states its licence as 'Other'; add what that is"):
        licence_of("some", metadata([("License", "Other")]))


def metadata(fields: list[tuple[str, str]]) -> Message:
    message = Message()
    for name, value in fields:
        message[name] = value
    return message
