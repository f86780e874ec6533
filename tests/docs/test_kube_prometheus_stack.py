"""docs/kube-prometheus-stack.md: its values are such as the chart has, and the scheduler takes the
configuration in them without a word."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kube-prometheus-stack.md").read_text()
(VALUES,) = map(yaml.safe_load, re.findall(r"```yaml\n# values.yaml\n(.*?)```", PAGE, re.DOTALL))
OF_THE_CHART = yaml.safe_load((ROOT / "deploy" / "helm" / "lowtide" / "values.yaml").read_text())


def test_the_chart_has_such_values() -> None:
    assert list(unknown(VALUES, OF_THE_CHART)) == []


def unknown(given: dict[str, Any], there: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in given.items():
        if name not in there:
            yield f"{path}{name}"
        elif isinstance(value, dict) and there[name]:
            yield from unknown(value, there[name], f"{path}{name}.")


def test_the_configuration_is_taken() -> None:
    loaded = load_config(yaml.safe_dump(VALUES["config"]), file="values.yaml")
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    assert (loaded.warnings, built.warnings) == ((), ())
    assert list(built.profiles) == ["lowtide"]
