"""What the extender minds in a configuration that other modes do not."""

from typing import Any

import pytest
import yaml

from lowtide.app.extender_config import check_profiles, warnings_for_extender
from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import make_registry
from lowtide.config.errors import ConfigError
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Built

TO_WRITE = (
    'write plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, '
    "{name: DefaultBinder}, ...]}} with the plugins to ask"
)
ALL_DISABLED = {"disabled": [{"name": "*"}]}


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in ("PrioritySort", "DefaultBinder", *names)]}


def built(*plugins: dict[str, Any], **fields: Any) -> tuple[Built, list[str]]:
    """Profiles with those sets, and what is warned of."""
    profiles = [
        {"schedulerName": f"profile-{number}", "plugins": each}
        for number, each in enumerate(plugins)
    ]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
        **fields,
    }
    loaded = load_config(yaml.safe_dump(config, sort_keys=False), file="f.yaml")
    registry = make_registry({})
    found = registry.build(loaded, {Binder: NoBinder()})
    defaults = [plugin.name for plugin in registry.defaults]
    return found, list(warnings_for_extender(loaded, found, defaults))


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param(
            {},
            f"f.yaml:4: profiles[0]: 16 default plugins of kube-scheduler that filter or score run "
            f"a second time here; {TO_WRITE}",
            id="warned of where it switches nothing off",
        ),
        pytest.param(
            {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}},
            f"f.yaml:4: profiles[0]: 15 default plugins of kube-scheduler that filter or score run "
            f"a second time here; {TO_WRITE}",
            id="warned of where it leaves some",
        ),
        pytest.param(
            {"multiPoint": ALL_DISABLED | enabled("NodeUsage")},
            None,
            id="fine with other plugins alone",
        ),
        pytest.param(
            {"multiPoint": ALL_DISABLED | enabled("NodeResourcesFit")},
            None,
            id="fine where it names a default plugin itself",
        ),
        pytest.param(
            {"filter": ALL_DISABLED, "preFilter": ALL_DISABLED, "score": ALL_DISABLED},
            None,
            id="fine where no default plugin is left at the points that count",
        ),
    ],
)
def test_a_profile_is(plugins: dict[str, Any], want: str | None) -> None:
    _, warnings = built(plugins)
    assert warnings == ([] if want is None else [want])


def test_the_first_of_several_such_profiles_is_told() -> None:
    good = {"multiPoint": ALL_DISABLED | enabled("NodeUsage")}
    _, (warning,) = built(good, {}, {})
    assert warning.startswith("f.yaml:13: profiles[1]: 16 default plugins ")


def test_other_extenders_are_not_asked() -> None:
    good = {"multiPoint": ALL_DISABLED | enabled("NodeUsage")}
    _, warnings = built(good, extenders=[{"urlPrefix": "http://other", "filterVerb": "filter"}])
    assert warnings == [
        "f.yaml:13: extenders: are not asked here: name them in kube-scheduler's own configuration"
    ]


def test_there_must_be_something_to_ask() -> None:
    nothing = {"multiPoint": ALL_DISABLED | enabled()}
    found, _ = built(nothing, nothing)
    with pytest.raises(ConfigError) as rejected:
        check_profiles(found.profiles)
    assert str(rejected.value) == (
        "profile profile-0, profile-1: no plugin filters or scores nodes, so there is nothing to "
        "ask the extender; enable one, such as NetworkTraffic"
    )


@pytest.mark.parametrize(
    "plugin",
    [pytest.param("NodeName", id="that filters"), pytest.param("NodeUsage", id="that scores")],
)
def test_one_profile_with_a_plugin_is_enough(plugin: str) -> None:
    found, _ = built(
        {"multiPoint": ALL_DISABLED | enabled()}, {"multiPoint": ALL_DISABLED | enabled(plugin)}
    )
    check_profiles(found.profiles)
