"""ARCHITECTURE.md names what exists: folders, files, functions, contracts; and few words."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lowtide"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)

MOST_WORDS = 32
LONGEST_ROW = 200
CORE_WORDS = (
    *("Pod", "Node", "Nodes", "Plugin", "Profile", "Signature"),
    *("Verdict", "Decision", "Machine", "Queue", "Reading", "Stage"),
)
# Names of Kubernetes, numpy and tools.
FOREIGN = {
    "import-linter",
    "schedulerName",
    "np.count_nonzero(mask)",
    "mask.any()",
    "np.maximum.reduce(values)",
    "values.max()",
    "lowtide explain",
}

QUOTED = sorted(
    set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.S | re.M)))
)
PLACES = [each for each in QUOTED if "/" in each]
NAMES = [
    each
    for each in QUOTED
    if "/" not in each and each not in FOREIGN and not (ROOT / each).exists()
]


def mapped() -> Iterator[str]:
    for line in BLOCKS[0].splitlines()[1:]:
        name = re.match(r"  (\S+)", line)
        assert name is not None, line
        yield name[1]


def test_the_map_has_one_line_for_each_folder_and_each_file_beside_them() -> None:
    files = {each.name for each in SOURCE.glob("*.py") if not each.name.startswith("__")}
    folders = {
        f"{each.relative_to(SOURCE)}/"
        for each in SOURCE.rglob("*")
        if each.is_dir() and each.name != "__pycache__"
    }
    assert sorted(mapped()) == sorted(files | folders)


def test_the_import_rule_is_the_one_that_import_linter_checks() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["type"] == "layers"]
    assert [set(line.split(" | ")) for line in BLOCKS[1].splitlines()] == [
        set(layer.replace("lowtide.", "").split(" | ")) for layer in layers
    ]


@pytest.mark.parametrize("place", PLACES)
def test_every_file_and_its_function_exists(place: str) -> None:
    path, _, name = place.partition(".")
    file = SOURCE / f"{path}.py"
    if (ROOT / place).exists():
        return
    assert file.exists(), f"there is no {file.relative_to(ROOT)}"
    assert not name or name in names_defined_in(file)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name: str) -> None:
    assert set(name.split(".")) <= all_names()


@cache
def all_names() -> set[str]:
    return set().union(*map(names_defined_in, SOURCE.rglob("*.py")))


@cache
def names_defined_in(file: Path) -> set[str]:
    """Of functions, classes and variables, also inside classes; arguments; and its own name."""
    found = {file.stem}
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case _:
                pass
    return found


def rows() -> list[str]:
    _, _, table = TEXT.partition("\n|---|---|\n")
    return table.splitlines()


def test_the_glossary_is_short() -> None:
    words = [word for row in rows() for word in row.split(" | ")[0].strip("| ").split(", ")]
    assert len(words) == len(set(words))
    assert len(words) <= MOST_WORDS
    assert set(CORE_WORDS) <= set(words)
    assert [row for row in rows() if len(row) > LONGEST_ROW] == []
