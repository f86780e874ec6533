"""What may be imported from where: each `__all__` names what is there, sorted, once."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import lowtide


def modules_that_say() -> list[str]:
    found = pkgutil.walk_packages(lowtide.__path__, prefix="lowtide.")
    names = ["lowtide", *(each.name for each in found if not each.name.endswith("__main__"))]
    return [name for name in names if hasattr(importlib.import_module(name), "__all__")]


@pytest.mark.parametrize("name", modules_that_say())
def test_what_a_module_says_it_offers_can_be_imported(name: str) -> None:
    module = importlib.import_module(name)
    offered = list(module.__all__)
    assert len(set(offered)) == len(offered)
    assert [each for each in offered if not hasattr(module, each)] == []
    given: dict[str, object] = {}
    exec(f"from {name} import *", given)
    assert given.keys() - {"__builtins__"} == set(offered)


def test_what_plugin_authors_read_says_what_it_offers() -> None:
    assert {"lowtide.framework.plugin", "lowtide.testing"} <= set(modules_that_say())


def test_the_package_offers_nothing_that_it_does_not_name() -> None:
    public = {
        name
        for name, value in vars(lowtide).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(getattr(lowtide, "__all__", ()))
