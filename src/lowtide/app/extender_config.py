"""What only the extender minds in a configuration: plugins that kube-scheduler runs already, other
extenders, and profiles that leave nothing to ask.

`lowtide extender` tells it at its start, and beside the configuration that it prints."""

from collections.abc import Iterable, Iterator, Mapping

from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig
from lowtide.config.types import Profile as ProfileConfig
from lowtide.framework.args import names_enabled
from lowtide.framework.profile import Profile
from lowtide.framework.registry import Built


def check_profiles(profiles: Mapping[str, Profile]) -> None:
    """ConfigError where no plugin has anything to say to a scheduler that asks."""
    if any(
        each.plugins_for_point("preFilter") or each.plugins_for_point("filter") or each.scorers
        for each in profiles.values()
    ):
        return
    raise ConfigError(
        [
            f"profile {', '.join(profiles)}: no plugin filters or scores nodes, so there is "
            f"nothing "
            "to ask the extender; enable one, such as NetworkTraffic"
        ]
    )


def warnings_for_extender(
    loaded: LoadedConfig, built: Built, default_names: Iterable[str]
) -> Iterator[str]:
    """`default_names` are the plugins that kube-scheduler has by default."""
    defaults = frozenset(default_names)
    for index, profile in enumerate(loaded.config.profiles):
        repeated = _not_asked_for(profile, built, defaults)
        if repeated:
            yield loaded.problem(
                ("profiles", index),
                f"{len(repeated)} default plugins of kube-scheduler that filter or score run a "
                'second time here; write plugins: {multiPoint: {disabled: [{name: "*"}], '
                "enabled: [{name: PrioritySort}, {name: DefaultBinder}, ...]}} with the plugins to "
                "ask",
            )
            break
    if loaded.config.extenders:
        yield loaded.problem(
            ("extenders",), "are not asked here: name them in kube-scheduler's own configuration"
        )


def _not_asked_for(
    profile: ProfileConfig, built: Built, defaults: frozenset[str]
) -> frozenset[str]:
    """The default plugins of a profile that it does not name itself."""
    expansion = built.expansions[profile.scheduler_name]
    asked = {
        plugin.name for point in ("preFilter", "filter", "score") for plugin in expansion[point]
    }
    return frozenset((asked & defaults) - names_enabled(profile))
