"""From names in a configuration to plugins: args, needs, outsiders, and what is wrong with them."""

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import pytest

from lowtide.config.errors import ConfigError
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.config.load import load_config, load_default
from lowtide.framework.plugin import Binder, BindOutcome, Nodes, Pod
from lowtide.framework.registry import Built, BuiltIn, OutsidePluginError, Registry
from lowtide.objects.kinds import KIND_OF
from lowtide.plugins import BUILT_IN
from lowtide.plugins.default_binder import DefaultBinder
from lowtide.testing import make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class FakeBinder:
    """Says in its outcome what it was asked for."""

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        return BindOutcome(error=f"fake: {pod.key} to {node_name}")


class Thermometer(Protocol):
    def degrees(self) -> int: ...


class Warm:
    def degrees(self) -> int:
        return 30


class CoolArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    most_degrees: int = 20
    rooms: list[str] = []

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.most_degrees > 100:
            yield "mostDegrees", f"must be at most 100, not {self.most_degrees}"


class Cool:
    """An outsider's plugin, with args and a need."""

    name = "Cool"
    args = CoolArgs
    needs = {"thermometer": Thermometer}

    def __init__(self, args: CoolArgs, thermometer: Thermometer) -> None:
        self.given = args
        self.thermometer = thermometer

    def score(self, pod: Pod, nodes: Nodes) -> None: ...


class Plain:
    name = "Plain"

    def filter(self, pod: Pod, nodes: Nodes) -> None: ...


BINDER = FakeBinder()
THERMOMETER = Warm()
SUPPLIES: dict[type, Any] = {Binder: BINDER, Thermometer: THERMOMETER}


def build(profiles: str, **plugins: type[Any]) -> Built:
    registry = Registry(BUILT_IN)
    if plugins:
        registry = registry.with_plugins(plugins)
    return registry.build(load_config(HEAD + profiles, file="scheduler.yaml"), SUPPLIES)


def problems(profiles: str, **plugins: type[Any]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        build(profiles, **plugins)
    return caught.value.problems


# The default.


def test_the_default_profile_is_kube_schedulers() -> None:
    built = Registry(BUILT_IN).build(load_default(), SUPPLIES)
    profile = built.profiles["lowtide"]
    assert {
        point: [plugin.name for plugin in profile.plugins_for_point(point)]
        for point in ("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "bind")
    } == {
        "preEnqueue": ["SchedulingGates"],
        "queueSort": ["PrioritySort"],
        "preFilter": [
            "NodeAffinity",
            "VolumeRestrictions",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
        ],
        "filter": [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeDeclaredFeatures",
        ],
        "postFilter": ["DynamicResources", "DefaultPreemption"],
        "bind": ["DefaultBinder"],
    }
    assert [(weighted.plugin.name, weighted.weight) for weighted in profile.scorers] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]


def test_a_profile_has_what_it_names() -> None:
    built = build(
        "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], "
        "enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}}]"
    )
    assert [plugin.name for plugin in built.profiles["default-scheduler"].plugins] == [
        "PrioritySort",
        "DefaultBinder",
    ]


async def test_a_need_is_supplied() -> None:
    (binder,) = build("").profiles["default-scheduler"].plugins_for_point("bind")
    assert isinstance(binder, DefaultBinder)
    outcome = await binder.bind(make_pod("p"), "a")
    assert outcome == BindOutcome(error="fake: default/p to a")


def test_every_plugin_is_made_once_per_profile() -> None:
    profile = build("").profiles["default-scheduler"]
    (filters,) = [
        plugin for plugin in profile.plugins_for_point("filter") if plugin.name == "NodeAffinity"
    ]
    (scores,) = [each.plugin for each in profile.scorers if each.plugin.name == "NodeAffinity"]
    assert filters is scores


def test_profiles_have_plugins_of_their_own() -> None:
    built = build(
        "profiles:\n"
        "- schedulerName: a\n"
        "- schedulerName: b\n"
        "  plugins: {score: {disabled: [{name: TaintToleration}]}}\n"
    )
    assert sorted(built.profiles) == ["a", "b"]
    counts = {name: len(profile.scorers) for name, profile in built.profiles.items()}
    assert counts == {"a": 9, "b": 8}


# What is wrong.


def test_an_unknown_plugin_is_told_with_its_place_and_what_is_near() -> None:
    assert problems(
        "profiles:\n- plugins:\n    score:\n      enabled: [{name: NetworkTrafic}]"
    ) == (
        "scheduler.yaml:6: profiles[0].plugins.score.enabled[0].name: no plugin is called "
        '"NetworkTrafic", did you mean "NetworkTraffic"?',
    )


def test_an_unknown_plugin_that_is_near_to_none_is_told_with_what_is_known() -> None:
    known = ", ".join(sorted(row.name for row in BUILT_IN))
    assert problems("profiles:\n- plugins:\n    score:\n      enabled: [{name: Zebra}]") == (
        "scheduler.yaml:6: profiles[0].plugins.score.enabled[0].name: no plugin is called "
        f'"Zebra"; known are {known}',
    )


def test_an_unknown_plugin_hides_nothing_that_is_wrong_with_the_args_of_others() -> None:
    assert problems(
        "profiles:\n- plugins: {score: {enabled: [{name: NetworkTrafic}]}}\n"
        "  pluginConfig:\n  - {name: NetworkTraffic, args: {window: soon}}"
    ) == (
        "scheduler.yaml:4: profiles[0].plugins.score.enabled[0].name: no plugin is called "
        '"NetworkTrafic", did you mean "NetworkTraffic"?',
        "scheduler.yaml:6: profiles[0].pluginConfig[0].args.window: "
        "must be a time such as 30s, 1m or 1h, not 'soon'",
    )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ("windw: 30s, pollInterval: soon", ["windw", "pollInterval"]),
        ("zebra: 1, hotNodes: {softPercent: 99}", ["zebra", "hotNodes"]),
        ("hotNodes: {hardPercnt: 99, softPercent: 98}", ["hotNodes.hardPercnt"]),
        ("windw: 30s, pollInterval: 5", ["windw", "pollInterval"]),
    ],
    ids=[
        "a value that is wrong by itself",
        "values that contradict each other",
        "unless the unknown field may be one of these values",
        "a value of another type",
    ],
)
def test_an_unknown_field_does_not_hide(args: str, told: list[str]) -> None:
    text = f"profiles:\n- pluginConfig:\n  - {{name: NetworkTraffic, args: {{{args}}}}}"
    places = [each.split(": ")[1].partition(".args.")[2] for each in problems(text)]
    assert places == told


FIT = "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            FIT + "ignoredResource: [a]",
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.ignoredResource: "
                'is not a known field, did you mean "ignoredResources"? valid here are '
                "ignoredResources, ignoredResourceGroups, scoringStrategy",
            ),
            id="an unknown field",
        ),
        pytest.param(
            FIT + "ignoredResources: 5",
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.ignoredResources: "
                "must be a list, not the integer 5",
            ),
            id="a wrong type",
        ),
        pytest.param(
            FIT + "kind: NodeAffinityArgs",
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.kind: "
                "must be NodeResourcesFitArgs, not 'NodeAffinityArgs'",
            ),
            id="args of another kind",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - {name: NetworkTraffic, args: {window: soon}}",
            (
                "scheduler.yaml:5: profiles[0].pluginConfig[0].args.window: "
                "must be a time such as 30s, 1m or 1h, not 'soon'",
            ),
            id="args of a plugin that is not enabled",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {a: 1}}\n"
            "  - {name: NodeAffinity, args: {b: 1}}",
            (
                "scheduler.yaml:6: profiles[0].pluginConfig[1].args.b: "
                "is not a known field; valid here are addedAffinity",
                "scheduler.yaml:5: profiles[0].pluginConfig[0].args.a: is not a known field; "
                "valid here are ignoredResources, ignoredResourceGroups, scoringStrategy",
            ),
            id="several mistakes at once",
        ),
    ],
)
def test_args_are_rejected_for(text: str, told: tuple[str, ...]) -> None:
    assert problems(text) == told


def test_the_header_of_args_may_be_there() -> None:
    build(FIT + "apiVersion: kubescheduler.config.k8s.io/v1\n      kind: NodeResourcesFitArgs")


# What a profile says to the extender mode.

EXTENDER = "profiles:\n- pluginConfig:\n  - {name: Extender, args: {%s}}"


def test_a_profile_may_say_how_the_extender_answers() -> None:
    built = build(EXTENDER % "emptyResult: error, namesBudget: 20ms, bookFor: 0s")
    assert built.extender_settings == {
        "default-scheduler": ExtenderSettings(
            empty_result="error", names_budget_seconds=0.02, book_for_seconds=0.0
        )
    }
    assert build("profiles:\n- {}").extender_settings == {
        "default-scheduler": ExtenderSettings(
            "failedNodes", 0.05, 0.5, book_for_seconds=10.0, log_answers=False
        )
    }


@pytest.mark.parametrize(
    ("args", "told"),
    [
        pytest.param(
            "emptyResult: eror",
            'emptyResult: is the string "eror", did you mean "error"? '
            "valid here are error, failedNodes",
            id="an unknown value",
        ),
        pytest.param(
            "namesBudget: 0s", "namesBudget: must be from 1ms to 30s, not 0s", id="no time at all"
        ),
        pytest.param(
            "nodesBudget: 1m", "nodesBudget: must be from 1ms to 30s, not 60s", id="too much time"
        ),
        pytest.param(
            "bookFor: 1h", "bookFor: must be from 0s to 600s, not 3600s", id="a long booking"
        ),
    ],
)
def test_what_the_extender_is_told_is_rejected_for(args: str, told: str) -> None:
    assert problems(EXTENDER % args) == (
        f"scheduler.yaml:5: profiles[0].pluginConfig[0].args.{told}",
    )


def test_the_extender_is_no_plugin_to_enable() -> None:
    (problem,) = problems("profiles:\n- plugins: {filter: {enabled: [{name: Extender}]}}")
    assert 'no plugin is called "Extender"' in problem


# Outsiders.

ENABLE_COOL = "profiles:\n- plugins: {score: {enabled: [{name: Cool, weight: 5}]}}\n"


def test_an_outsiders_plugin_gets_its_args_and_its_needs() -> None:
    built = build(
        ENABLE_COOL + "  pluginConfig:\n  - {name: Cool, args: {mostDegrees: 25, rooms: [a]}}",
        Cool=Cool,
    )
    weighted = built.profiles["default-scheduler"].scorers[-1]
    assert isinstance(weighted.plugin, Cool)
    assert weighted.weight == 5
    assert weighted.plugin.given == CoolArgs(most_degrees=25, rooms=["a"])
    assert weighted.plugin.thermometer is THERMOMETER


def test_an_outsiders_plugin_has_its_defaults() -> None:
    scorers = build(ENABLE_COOL, Cool=Cool).profiles["default-scheduler"].scorers
    assert scorers[-1].plugin.given == CoolArgs()


def test_an_outsiders_plugin_is_not_in_a_profile_that_does_not_name_it() -> None:
    built = build("", Cool=Cool, Plain=Plain)
    names = [plugin.name for plugin in built.profiles["default-scheduler"].plugins]
    assert not {"Cool", "Plain"} & set(names)


def test_an_outsiders_plugin_needs_no_constructor() -> None:
    built = build("profiles:\n- plugins: {filter: {enabled: [{name: Plain}]}}", Plain=Plain)
    assert isinstance(built.profiles["default-scheduler"].plugins_for_point("filter")[-1], Plain)


def test_an_outsiders_args_are_checked_by_itself() -> None:
    text = ENABLE_COOL + "  pluginConfig:\n  - {name: Cool, args: {mostDegrees: 101}}"
    assert problems(text, Cool=Cool) == (
        "scheduler.yaml:6: profiles[0].pluginConfig[0].args.mostDegrees: "
        "must be at most 100, not 101",
    )


def test_an_outsiders_plugin_serves_only_points_that_it_has_a_method_for() -> None:
    told = problems("profiles:\n- plugins: {filter: {enabled: [{name: Cool}]}}", Cool=Cool)
    assert len(told) == 1
    assert told[0].startswith("scheduler.yaml:4: profiles[0].plugins.filter.enabled[0].name: ")


def test_a_need_that_nobody_supplies_is_told() -> None:
    registry = Registry(BUILT_IN).with_plugins({"Cool": Cool})
    loaded = load_config(HEAD + ENABLE_COOL, file="scheduler.yaml")
    with pytest.raises(ConfigError) as caught:
        registry.build(loaded, {Binder: BINDER})
    assert caught.value.problems == (
        "plugin Cool needs Thermometer, and Binder can be supplied here",
    )


def test_a_name_can_be_taken_once() -> None:
    class NodeName:
        name = "NodeName"

    with pytest.raises(ConfigError) as caught:
        Registry(BUILT_IN).with_plugins({"NodeName": NodeName})
    assert caught.value.problems == ("a plugin named NodeName already exists",)


def test_a_class_is_registered_under_its_own_name() -> None:
    with pytest.raises(ConfigError) as caught:
        Registry(BUILT_IN).with_plugins({"Fresh": Cool})
    assert caught.value.problems == (
        "the class Cool is registered as Fresh; its `name` must be that too, not 'Cool'",
    )


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        pytest.param(Plain(), "it is Plain and must be a class", id="is not a class"),
        pytest.param(object, "the class must have a `name`, such as its own", id="has no name"),
        pytest.param(
            type("Idle", (), {"name": "Idle"}),
            "the class must have one of the methods may_enqueue, sort_key, pre_filter, filter, "
            "post_filter, score, reserve, permit, pre_bind, bind, post_bind",
            id="does nothing",
        ),
        pytest.param(
            type("Typo", (Plain,), {"name": "Idle", "scores": Plain.filter}),
            'its public method "scores" is not in the contract, and names of its own methods must '
            'start with an underscore, did you mean "score"?',
            id="has a misspelled method",
        ),
    ],
)
def test_what_is_no_plugin_is_rejected_when_it(plugin: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Registry(BUILT_IN).with_plugins({"Idle": plugin})
    assert caught.value.problems == (f"plugin Idle breaks the contract: {told}",)


def test_a_constructor_that_does_not_take_what_is_given_is_told() -> None:
    class Proud(Plain):
        name = "Proud"

        def __init__(self, args: CoolArgs) -> None: ...

    told = problems("profiles:\n- plugins: {filter: {enabled: [{name: Proud}]}}", Proud=Proud)
    assert told == (
        "plugin Proud is made by Proud(), and its constructor does not take that: "
        "missing a required argument: 'args'",
    )


def test_a_constructor_that_rejects_its_args_is_told() -> None:
    class Fussy(Plain):
        name = "Fussy"

        def __init__(self) -> None:
            raise ValueError("nothing is good enough")

    told = problems("profiles:\n- plugins: {filter: {enabled: [{name: Fussy}]}}", Fussy=Fussy)
    assert told == ("plugin Fussy cannot be made of its args: nothing is good enough",)


# Outsiders that nobody has registered.


class Shelf:
    """Plugins by the name that a configuration gives them; a text is why one cannot be had."""

    def __init__(self, **plugins: Any) -> None:
        self._plugins = {name.replace("__", ":"): plugin for name, plugin in plugins.items()}
        self.asked: list[str] = []

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self._plugins if ":" not in name)

    def find(self, name: str) -> type[Any] | None:
        self.asked.append(name)
        found = self._plugins.get(name)
        if isinstance(found, str):
            raise OutsidePluginError(found)
        return found


def build_with(shelf: Shelf, profiles: str, **plugins: type[Any]) -> Built:
    registry = Registry(BUILT_IN, shelf).with_plugins(plugins)
    return registry.build(load_config(HEAD + profiles, file="scheduler.yaml"), SUPPLIES)


def problems_with(shelf: Shelf, profiles: str, **plugins: type[Any]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        build_with(shelf, profiles, **plugins)
    return caught.value.problems


@pytest.mark.parametrize(
    ("enabled", "configured"),
    [
        pytest.param("Cool", "Cool", id="by its name"),
        pytest.param("cold:Cool", "cold:Cool", id="by its module and class"),
        pytest.param("cold:Cool", "Cool", id="by its module and class once, and then by its name"),
    ],
)
def test_a_configuration_may_name_a_plugin_that_is_found_outside(
    enabled: str, configured: str
) -> None:
    shelf = Shelf(Cool=Cool) if ":" not in enabled else Shelf(cold__Cool=Cool)
    built = build_with(
        shelf,
        f"profiles:\n- plugins: {{score: {{enabled: [{{name: '{enabled}', weight: 5}}]}}}}\n"
        f"  pluginConfig:\n  - {{name: '{configured}', args: {{mostDegrees: 25}}}}",
    )
    weighted = built.profiles["default-scheduler"].scorers[-1]
    assert (weighted.plugin.name, weighted.weight) == ("Cool", 5)
    assert weighted.plugin.given == CoolArgs(most_degrees=25)
    assert [plugin.name for plugin in built.expansions["default-scheduler"]["score"]][-1] == "Cool"
    assert shelf.asked == [enabled]


def test_outside_is_looked_only_for_what_is_not_known() -> None:
    shelf = Shelf(NodeName=Plain, Cool=Plain)
    build_with(shelf, ENABLE_COOL + "  pluginConfig:\n  - {name: Extender}", Cool=Cool)
    assert shelf.asked == []


def test_the_same_class_may_be_registered_and_named_by_its_module() -> None:
    text = ENABLE_COOL.replace("name: Cool", "name: 'cold:Cool'")
    built = build_with(Shelf(cold__Cool=Cool), text, Cool=Cool)
    assert [each.plugin.name for each in built.profiles["default-scheduler"].scorers][-1] == "Cool"


def test_what_is_enabled_by_its_module_can_be_disabled_so() -> None:
    built = build_with(
        Shelf(cold__Cool=Cool),
        "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: 'cold:Cool'}]}\n"
        "    score: {disabled: [{name: 'cold:Cool'}]}",
    )
    assert "Cool" not in [each.plugin.name for each in built.profiles["default-scheduler"].scorers]


def test_args_are_given_once_under_whichever_name() -> None:
    text = ENABLE_COOL.replace("name: Cool", "name: 'cold:Cool'")
    text += "  pluginConfig:\n  - {name: Cool}\n  - {name: 'cold:Cool'}"
    assert problems_with(Shelf(cold__Cool=Cool), text) == (
        'scheduler.yaml:7: profiles[0].pluginConfig[1].name: is "Cool", which is already '
        "configured by pluginConfig[0]; give its args once",
    )


SCORES = "scheduler.yaml:4: profiles[0].plugins.score.enabled[0].name: "


def test_why_a_plugin_cannot_be_had_is_told_with_its_place() -> None:
    shelf = Shelf(cold__Cool="there is no module cold")
    text = ENABLE_COOL.replace("name: Cool", "name: 'cold:Cool'")
    assert problems_with(shelf, text) == (f"{SCORES}there is no module cold",)


def test_a_plugin_from_outside_must_not_have_anothers_name() -> None:
    class NodeName(Plain):
        name = "NodeName"

    text = ENABLE_COOL.replace("name: Cool", "name: 'cold:NodeName'")
    assert problems_with(Shelf(cold__NodeName=NodeName), text) == (
        f"{SCORES}\"cold:NodeName\" is a plugin whose `name` is 'NodeName', and there is another "
        f"one "
        "of that name; its `name` must be its own",
    )


def test_what_can_be_had_outside_is_known_when_a_name_is_misspelled() -> None:
    (told,) = problems_with(Shelf(Cooler=Cool), ENABLE_COOL)
    assert told.startswith(f'{SCORES}no plugin is called "Cool", did you mean "Cooler"?')


def test_a_row_knows_its_points() -> None:
    given = BuiltIn("TaintToleration", Plain, 3, ("preScore",))
    assert (given.implements("preScore"), given.implements("filter")) == (True, False)
    by_method = BuiltIn("Plain", Plain)
    assert (by_method.implements("filter"), by_method.implements("score")) == (True, False)
    assert not by_method.implements("placementScore")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in BUILT_IN])
def test_a_built_in_plugin_is_called_as_its_row(row: BuiltIn) -> None:
    assert row.plugin.name == row.name


def test_a_plugin_may_depend_only_on_what_is_watched() -> None:
    class Weather(Plain):
        name = "Weather"
        kinds = (int,)

    text = f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: Weather}}]}}}}}}]\n"
    registry = Registry(BUILT_IN).with_plugins({"Weather": Weather})
    with pytest.raises(ConfigError) as rejection:
        registry.build(load_config(text, file="f.yaml"), {Binder: BINDER})
    assert rejection.value.problems == (
        "plugin Weather depends on int, which is not watched; "
        f"{', '.join(kind.name for kind in KIND_OF.values())} can be",
    )
