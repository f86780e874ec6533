"""Plugins of other distributions: found by their entry point or their module, or told why not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowtide.app.outside_plugins import InstalledPlugins
from lowtide.framework.registry import OutsidePluginError

PLUGINS = """\
class SameRack:
    name = "SameRack"
    def score(self, pod, nodes): ...

class Holder:
    class Inner(SameRack):
        name = "Inner"

class Before(SameRack):
    name = "Before"
    reads = 4

class Idle:
    name = "Idle"

shelf = SameRack()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that Python looks into; what is imported from it is forgotten after the test."""
    (tmp_path / "outside_plugins.py").write_text(PLUGINS)
    (tmp_path / "outside_broken.py").write_text("1 / 0\n")
    (tmp_path / "outside_needy.py").write_text("import not_to_be_had\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def install(site: Path, distribution: str, **offers: str) -> None:
    folder = site / f"{distribution}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in offers.items())
    (folder / "entry_points.txt").write_text(f"[lowtide.plugins]\n{lines}")


def rejection(name: str) -> str:
    with pytest.raises(OutsidePluginError) as caught:
        InstalledPlugins().find(name)
    return str(caught.value)


def test_a_plugin_is_found_by_its_entry_point(site: Path) -> None:
    install(site, "racks", SameRack="outside_plugins:SameRack")
    plugins = InstalledPlugins()
    found = plugins.find("SameRack")
    assert found is sys.modules["outside_plugins"].SameRack
    assert (plugins.names(), plugins.find("OtherRack")) == (("SameRack",), None)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("outside_plugins:SameRack", "SameRack", id="in a module"),
        pytest.param("outside_plugins:Holder.Inner", "Inner", id="inside another class"),
    ],
)
def test_a_plugin_is_found_by_its_place(site: Path, name: str, want: str) -> None:
    found = InstalledPlugins().find(name)
    assert found is not None
    assert found.name == want


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param(
            "no_such_module.at_all:Plugin",
            "there is no module no_such_module; install it, or name its folder in PYTHONPATH",
            id="without a module",
        ),
        pytest.param(
            "outside_plugins:SameRak",
            'the module outside_plugins has no SameRak, did you mean "SameRack"?',
            id="misspelled",
        ),
        pytest.param(
            "outside_plugins:NotThere", "the module outside_plugins has no NotThere", id="absent"
        ),
        pytest.param(
            "outside_plugins:shelf",
            "outside_plugins:shelf is not a plugin: it is SameRack and must be a class",
            id="not a class",
        ),
        pytest.param(
            "outside_plugins:Holder",
            "outside_plugins:Holder is not a plugin: the class must have a `name`, such as its own",
            id="without a name",
        ),
        pytest.param(
            "outside_plugins:Before",
            "outside_plugins:Before is not a plugin: delete `reads`, which is no longer needed: "
            "what a "
            "plugin reads is recorded",
            id="written for an earlier version",
        ),
        pytest.param(
            "outside_broken:Plugin",
            "the module outside_broken cannot be imported: ZeroDivisionError: division by zero",
            id="in a module that fails",
        ),
        pytest.param(
            "outside_needy:Plugin",
            "the module outside_needy cannot be imported: "
            "ModuleNotFoundError: No module named 'not_to_be_had'",
            id="in a module that needs another",
        ),
        *(
            pytest.param(
                place,
                f'"{place}" must be a module and a class in it, such as my_plugins:SameRack',
                id=f"spelled {place}",
            )
            for place in ("plugins:", ":Plugin", ".plugins:Plugin", "a:b:c", "../plugins.py:Plugin")
        ),
    ],
)
def test_it_is_told_in_a_sentence_when_a_plugin_is(site: Path, name: str, told: str) -> None:
    assert rejection(name) == told


def test_a_plugin_that_two_distributions_offer_is_rejected(site: Path) -> None:
    install(site, "racks", SameRack="outside_plugins:SameRack")
    install(site, "towers", SameRack="outside_broken:SameRack")
    told = rejection("SameRack")
    # In the order in which the folder lists them.
    offers = ["racks (outside_plugins:SameRack)", "towers (outside_broken:SameRack)"]
    ends = "; uninstall one, or write the module:Class that is meant"
    assert told in [
        f'"SameRack" is offered by {" and ".join(each)}{ends}' for each in (offers, offers[::-1])
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(
            "outside_gone:SameRack",
            ", and cannot be used: there is no module outside_gone; install it, or name its folder "
            "in PYTHONPATH",
            id="cannot be loaded",
        ),
        pytest.param(
            "outside_plugins:Holder.Inner",
            ", whose `name` is 'Inner'; both must be the same",
            id="has another name",
        ),
    ],
)
def test_an_offer_is_rejected_when_its_class(site: Path, value: str, told: str) -> None:
    install(site, "racks", SameRack=value)
    assert rejection("SameRack") == f'"SameRack" is offered by racks ({value}){told}'
