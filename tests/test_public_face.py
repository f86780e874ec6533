"""What may be imported from where: each `__all__` names what is there, sorted, once."""

import importlib
import pkgutil
import subprocess
import sys
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
    assert public == set(lowtide.__all__) == {"run"}


def test_the_package_itself_costs_nothing_to_import() -> None:
    asked = "import sys, lowtide; print([name for name in sys.modules if 'lowtide' in name])"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    # An editable installation has a module of its own for finding the package.
    assert "'lowtide'" in done.stdout
    assert "'lowtide." not in done.stdout


def test_run_is_the_command_line_with_an_outsiders_plugins() -> None:
    asked = (
        "import lowtide\n"
        "class Mine:\n"
        "    name = 'Mine'\n"
        "    def score(self, pod, nodes): ...\n"
        "lowtide.run(plugins={'Mine': Mine})"
    )
    config = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]"
    )
    words = [sys.executable, "-c", asked, "config", "show", "/dev/stdin", "--output=json"]
    done = subprocess.run(
        words, input=config, capture_output=True, text=True, check=True, timeout=60
    )
    assert '"Mine",' in done.stdout
