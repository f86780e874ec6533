"""docs/configuration.md is as it would be made now (`make docs-files` does it), and the bounds that
it tells are those that configurations are held to."""

import json
import re
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest

from configuration_reference import PAGE, page, rows_of
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.errors import ConfigError
from lowtide.config.extender_settings import ENTRY, ExtenderSettings
from lowtide.config.load import API_VERSION, load_config
from lowtide.framework.plugin import Binder
from lowtide.plugins import BUILT_IN

ARGS = {row.name: row.plugin.args for row in BUILT_IN if hasattr(row.plugin, "args")}
# What must stand beside a field for it to be looked at.
_CURVE = {
    "scoringStrategy": {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": [{"utilization": 50, "score": 5}]},
    }
}
BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("NodeResourcesFit", "scoringStrategy.requestedToCapacityRatio.shape[].utilization"): _CURVE,
    ("NodeResourcesFit", "scoringStrategy.requestedToCapacityRatio.shape[].score"): _CURVE,
    ("NodeResourcesFit", "scoringStrategy.resources[].weight"): {
        "scoringStrategy": {"resources": [{"name": "cpu"}]}
    },
    ("NodeResourcesBalancedAllocation", "resources[].weight"): {"resources": [{"name": "cpu"}]},
    ("NetworkTraffic", "linkCapacities[].capacity"): {
        "linkCapacities": [{"matchLabels": {"a": "b"}}]
    },
    ("NetworkTraffic", "hotNodes.hardPercent"): {
        "hotNodes": {"softPercent": 0, "coolingPercent": 0}
    },
    ("NodeUsage", "cpu"): {"memory": 1},
}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


def bounds() -> list[Any]:
    cases = []
    for name, struct in {**ARGS, ENTRY: ExtenderSettings}.items():
        for row in rows_of(struct):
            for allowed, rejected in ends(row.bounds):
                told = f"{name} {row.path} {row.bounds}: {allowed}"
                cases.append(pytest.param(name, row.path, allowed, rejected, id=told))
    return cases


def ends(text: str) -> list[tuple[str, str]]:
    """Each end of a range, and a value beyond it."""
    low = re.search(r"^(?:at least )?(\d+)(\w*)(?: to |,|$)", text)
    high = re.search(r"(?: to |at most )(\d+)([\w%]*)$", text)
    found = []
    if low:
        found.append((f"{low[1]}{low[2]}", beyond(low[1], low[2], -1)))
    if high:
        found.append((f"{high[1]}{high[2]}", beyond(high[1], high[2], 1)))
    return found


def beyond(number: str, unit: str, direction: int) -> str:
    step = 0.01 if unit.isalpha() else 1
    return f"{int(number) + direction * step:g}{unit}"


@pytest.mark.parametrize(("name", "path", "allowed", "rejected"), bounds())
def test_a_bound_holds(name: str, path: str, allowed: str, rejected: str) -> None:
    build(name, path, allowed)
    with pytest.raises(ConfigError):
        build(name, path, rejected)


def build(name: str, path: str, value: str) -> None:
    args = deepcopy(BESIDE.get((name, path), {}))
    place: Any = args
    *steps, last = re.findall(r"[^.\[\]]+|\[\]", path)
    for step, following in pairwise([*steps, last]):
        if step == "[]":
            place = place[0]
        else:
            place = place.setdefault(step, [] if following == "[]" else {})
    place[last] = json.loads(value) if re.fullmatch(r"-?\d+", value) else value
    config = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": name, "args": args}]}],
    }
    make_registry({}).build(load_config(json.dumps(config), file="a.json"), {Binder: NoBinder()})
