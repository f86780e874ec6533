"""Which plugins run where: the plugins by hand, and cases recorded from kube-scheduler v1.36.4."""

import json
from pathlib import Path
from typing import Any

import pytest

from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig, load_config, load_default
from lowtide.config.plugin_sets import (
    expand,
    expand_profiles,
    merge_with_defaults,
    named_plugins,
    unknown_plugin,
)
from lowtide.config.types import EXTENSION_POINTS, DisabledPlugin, EnabledPlugin, Plugins, PluginSet

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

# kube-scheduler's default plugins in order: name, weight, extension points.
KUBE_DEFAULTS = """\
SchedulingGates 0 preEnqueue
PrioritySort 0 queueSort
NodeUnschedulable 0 filter
NodeName 0 filter
TaintToleration 3 filter preScore score
NodeAffinity 2 preFilter filter preScore score
NodePorts 0 preFilter filter
NodeResourcesFit 1 preFilter filter preScore score placementScore
VolumeRestrictions 0 preFilter filter
NodeVolumeLimits 0 preFilter filter
VolumeBinding 0 preFilter filter preScore score reserve preBind
VolumeZone 0 preFilter filter
PodTopologySpread 2 preFilter filter preScore score
InterPodAffinity 2 preFilter filter preScore score
DynamicResources 2 preEnqueue preFilter filter postFilter score reserve preBind
DefaultPreemption 0 preEnqueue postFilter
NodeResourcesBalancedAllocation 1 preScore score
ImageLocality 1 score
DefaultBinder 0 bind
NodeDeclaredFeatures 0 preFilter filter
"""
ROWS = [line.split() for line in KUBE_DEFAULTS.splitlines()]
DEFAULTS = [EnabledPlugin(name, int(weight)) for name, weight, *_ in ROWS]
POINTS = {name: points for name, _, *points in ROWS}

CASES = json.loads((Path(__file__).parent / "profile_cases.json").read_text())


def kube_implements(name: str, point: str) -> bool:
    return point in POINTS[name]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_recorded_profile(case: dict[str, Any]) -> None:
    loaded = load_config(json.dumps(case["config"]), file="f.json")
    expansion = expand_profiles(loaded, DEFAULTS, kube_implements)[case["schedulerName"]]
    got = {
        point: [
            [plugin.name, plugin.weight] if point == "score" else plugin.name
            for plugin in expansion[point]
        ]
        for point in case["profile"]
    }
    assert got == case["profile"]


def test_the_points_that_are_not_recorded() -> None:
    expansion = expand_profiles(load_default(), DEFAULTS, kube_implements)["lowtide"]
    recorded = ("preFilter", "filter", "postFilter", "preScore", "score")
    assert {
        point: [(plugin.name, plugin.weight) for plugin in plugins]
        for point, plugins in expansion.items()
        if point not in recorded
    } == {
        "preEnqueue": [("SchedulingGates", 0), ("DynamicResources", 0), ("DefaultPreemption", 0)],
        "queueSort": [("PrioritySort", 0)],
        "reserve": [("VolumeBinding", 0), ("DynamicResources", 0)],
        "permit": [],
        "preBind": [("VolumeBinding", 0), ("DynamicResources", 0)],
        "bind": [("DefaultBinder", 0)],
        "postBind": [],
        "placementGenerate": [],
        "placementScore": [("NodeResourcesFit", 1)],
    }


def plugin_set(*enabled: str, disabled: str = "") -> PluginSet:
    """Make a set of plugins written as `A` or `A=3`."""
    return PluginSet(
        tuple(enabled_plugin(text) for text in enabled),
        tuple(DisabledPlugin(name) for name in disabled.split()),
    )


def enabled_plugin(text: str) -> EnabledPlugin:
    name, _, weight = text.partition("=")
    return EnabledPlugin(name, int(weight or 0))


def texts(plugins: tuple[EnabledPlugin, ...]) -> str:
    return " ".join(
        f"{plugin.name}={plugin.weight}" if plugin.weight else plugin.name for plugin in plugins
    )


@pytest.mark.parametrize(
    ("custom", "wanted"),
    [
        pytest.param(plugin_set(), "A=1 B=2 C", id="keeps the defaults in order"),
        pytest.param(plugin_set(disabled="B"), "A=1 C", id="leaves out what is disabled"),
        pytest.param(plugin_set("X", disabled="*"), "X", id="leaves out all for a star"),
        pytest.param(plugin_set("X=4", "Y"), "A=1 B=2 C X=4 Y", id="appends what is new"),
        pytest.param(plugin_set("X", "B=7"), "A=1 B=7 C X", id="replaces a default in its place"),
        pytest.param(plugin_set("B"), "A=1 B C", id="forgets the weight of what is listed again"),
        pytest.param(plugin_set("B", disabled="B"), "A=1 C B", id="moves what is off and on"),
        pytest.param(plugin_set(disabled="Z"), "A=1 B=2 C", id="ignores a stranger disabled"),
        pytest.param(
            plugin_set("B=1", "B=2"), "A=1 B=2 C B=1", id="keeps an entry that is there twice"
        ),
    ],
)
def test_merging(custom: PluginSet, wanted: str) -> None:
    defaults = [enabled_plugin(text) for text in ("A=1", "B=2", "C")]
    merged = merge_with_defaults(defaults, Plugins(multi_point=custom, score=plugin_set("S")))
    assert texts(merged.multi_point.enabled) == wanted
    assert merged.multi_point.disabled == custom.disabled
    assert merged.score == plugin_set("S")


def implements(name: str, point: str) -> bool:
    """Know a few plugins by what they do; every other name both filters and scores."""
    only = {"Sort": "queueSort", "Bind": "bind", "F": "filter", "G": "placementGenerate"}
    kind = name.rstrip("2")
    return point == only[kind] if kind in only else point in ("filter", "score")


def make_plugins(*multi_point: str, **points: PluginSet) -> Plugins:
    return Plugins(multi_point=plugin_set("Sort", "Bind", *multi_point), **points)


@pytest.mark.parametrize(
    ("plugins", "wanted"),
    [
        pytest.param(make_plugins("A", "B"), "A=1 B=1", id="counts no weight as 1"),
        pytest.param(make_plugins("A=2", "F", "B=-3"), "A=2 B=-3", id="skips who cannot score"),
        pytest.param(
            make_plugins("A=2", "B=2", score=plugin_set("B=5")),
            "B=5 A=2",
            id="puts an override first, with its own weight",
        ),
        pytest.param(
            make_plugins("A=2", score=plugin_set("A")),
            "A=1",
            id="takes the override's missing weight for 1",
        ),
        pytest.param(
            make_plugins("A", "B", score=plugin_set("X", "B", "Y", "A")),
            "B=1 A=1 X=1 Y=1",
            id="orders overrides by the point and puts strangers last",
        ),
        pytest.param(
            make_plugins("A", "B", score=plugin_set(disabled="A")),
            "B=1",
            id="leaves out what the point disables",
        ),
        pytest.param(
            make_plugins("A", "B", score=plugin_set("A=4", disabled="A")),
            "B=1 A=4",
            id="puts last what the point disables and enables",
        ),
        pytest.param(
            make_plugins("A=3", "B", score=plugin_set("X", "A", disabled="*")),
            "X=1 A=1",
            id="leaves out multiPoint for a star",
        ),
    ],
)
def test_expansion_of_score(plugins: Plugins, wanted: str) -> None:
    assert texts(expand(plugins, implements)["score"]) == wanted


def test_expansion_names_every_point() -> None:
    expansion = expand(make_plugins("F", filter=plugin_set("A=9")), implements)
    wanted = dict.fromkeys(EXTENSION_POINTS, "")
    wanted |= {"queueSort": "Sort", "bind": "Bind", "filter": "F A"}
    assert {point: texts(plugins) for point, plugins in expansion.items()} == wanted


HUGE = f"A={2**62}"


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        pytest.param(
            make_plugins("A", "A"),
            'plugins.multiPoint.enabled: "A" is enabled twice; enable it once',
            id="rejects a plugin twice in multiPoint",
        ),
        pytest.param(
            make_plugins(score=plugin_set("A", "B", "A")),
            'plugins.score.enabled[2].name: "A" is enabled twice; enable it once',
            id="rejects a plugin twice at a point",
        ),
        pytest.param(
            make_plugins(score=plugin_set("A", "F")),
            'plugins.score.enabled[1].name: "F" does nothing at score; it can be enabled at filter',
            id="rejects a plugin where it does nothing",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Bind")),
            "plugins.queueSort: must leave one plugin to sort the queue, not none",
            id="rejects an unsorted queue",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort")),
            "plugins.bind: must leave at least one plugin to bind pods, not none",
            id="rejects a profile that cannot bind",
        ),
        pytest.param(
            Plugins(
                multi_point=plugin_set("Sort", "Bind"),
                placement_generate=plugin_set("G", "G2"),
            ),
            "plugins.placementGenerate: must leave at most one plugin, not G, G2",
            id="rejects two that generate placements",
        ),
        pytest.param(
            make_plugins(score=plugin_set(HUGE)),
            f"plugins.score: the weights add up to {2**62}; the maximum is {(2**63 - 1) // 100}",
            id="rejects weights that overflow",
        ),
    ],
)
def test_rejected(plugins: Plugins, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(plugins, implements)
    assert caught.value.problems == (problem,)


def load(profiles: str) -> LoadedConfig:
    return load_config(f"{HEADER}profiles:\n{profiles}", file="f.yaml")


@pytest.mark.parametrize(
    ("profiles", "problems"),
    [
        pytest.param(
            """\
- schedulerName: a
- schedulerName: b
  plugins:
    score:
      enabled:
      - name: F
    bind:
      disabled:
      - name: Bind
""",
            [
                'f.yaml:9: profiles[1].plugins.score.enabled[0].name: "F" does nothing at score; '
                "it can be enabled at filter",
                "f.yaml:10: profiles[1].plugins.bind: "
                "must leave at least one plugin to bind pods, not none",
            ],
            id="name file, line and path",
        ),
        pytest.param(
            """\
- schedulerName: a
- schedulerName: b
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: Sort2}]}
""",
            [
                "f.yaml:7: profiles[1].plugins.queueSort: must be the same in every profile, "
                'but is Sort2 here and Sort in "a"'
            ],
            id="reject two ways to sort one queue",
        ),
        pytest.param(
            """\
- schedulerName: a
  pluginConfig: [{name: Sort, args: {by: age}}]
- schedulerName: b
  pluginConfig: [{name: Sort, args: {by: size}}]
""",
            [
                "f.yaml:7: profiles[1].pluginConfig: the args of Sort must be the same in every "
                'profile, but differ from those in "a"'
            ],
            id="reject two args for one queue",
        ),
    ],
)
def test_problems_of_profiles(profiles: str, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        expand_profiles(load(profiles), [EnabledPlugin("Sort"), EnabledPlugin("Bind")], implements)
    assert caught.value.problems == tuple(problems)


NAMES = """\
- plugins:
    score:
      enabled:
      - name: NetworkTrafic
      disabled:
      - name: Stranger
    multiPoint:
      enabled:
      - name: NodeName
      - name: EBSLimits
  pluginConfig:
  - name: zebra
"""


def test_named_plugins() -> None:
    path = ("profiles", 0)
    assert list(named_plugins(load(NAMES).config)) == [
        ((*path, "plugins", "score", "enabled", 0, "name"), "NetworkTrafic"),
        ((*path, "plugins", "multiPoint", "enabled", 0, "name"), "NodeName"),
        ((*path, "plugins", "multiPoint", "enabled", 1, "name"), "EBSLimits"),
        ((*path, "pluginConfig", 0, "name"), "zebra"),
    ]


def test_unknown_plugin() -> None:
    loaded, known = load(NAMES), ["NodeName", "NetworkTraffic"]
    assert [
        unknown_plugin(name, loaded.where(path), known)
        for path, name in named_plugins(loaded.config)
        if name not in known
    ] == [
        'f.yaml:7: profiles[0].plugins.score.enabled[0].name: no plugin is called "NetworkTrafic", '
        'did you mean "NetworkTraffic"?',
        'f.yaml:13: profiles[0].plugins.multiPoint.enabled[1].name: "EBSLimits" was removed from '
        "Kubernetes; NodeVolumeLimits replaces it",
        'f.yaml:15: profiles[0].pluginConfig[0].name: no plugin is called "zebra"; '
        "known are NetworkTraffic, NodeName",
    ]


def test_unknown_plugin_takes_any_place() -> None:
    assert unknown_plugin("nodename", "here", ["NodeName"]) == (
        'here: no plugin is called "nodename", did you mean "NodeName"?'
    )
