"""The replay mode: a recording through a fresh machine, without a cluster."""

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import read_config
from lowtide.app.simulate import NamedConfig
from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig, load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Registry
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Recording, Step
from lowtide.records.recording_header import Header, RecordingError, sources_by_place, sources_of
from lowtide.records.replaying import Difference, Replay
from lowtide.scheduler.machine import Machine
from lowtide.simulator.judged_anew import JudgedAnew, taken_as_recorded
from lowtide.simulator.rerun import Rerun
from lowtide.simulator.rerun_report import AsRecorded, Compared, compared
from lowtide.simulator.shadow_report import ShadowSummary
from lowtide.simulator.shadowing import Shadowing

_STEPS_BETWEEN_TELLING = 1000

Progress = Callable[[int, int], None]  # bytes read, and all


@dataclass(frozen=True, slots=True)
class Replayed:
    header: Header
    event_count: int
    decision_count: int
    different_count: int
    differences: tuple[Difference, ...]  # the first ones, if they are very many
    warnings: tuple[str, ...]


def replay(
    path: Path, registry: Registry, config_file: Path | None, progress: Progress
) -> Replayed:
    """Every event as it was recorded, under the recorded configuration or that of the file."""
    with Recording(path) as recording:
        header = recording.header
        loaded = _recorded(recording) if config_file is None else read_config(config_file)
        built = registry.build(loaded, {Binder: NoBinder()})
        _check_names(recording, list(built.profiles), str(config_file or "its configuration"))
        config = loaded.config
        machine = Machine(
            built.profiles,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            keeps_every_score=header.keeps_every_score,
            extenders=config.extenders,
        )
        sources = sources_by_place(header, sources_of(built.profiles.values()))
        warnings = [
            f"{path.name}: nothing reads the recorded {each.type}"
            for each, source in zip(header.sources, sources, strict=True)
            if source is None
        ]
        made = Replay(machine, with_reasons=not header.names_are_hashed)
        for step in _steps(recording, sources, progress):
            made.take(step)
        return Replayed(
            header,
            made.event_count,
            made.decision_count,
            made.different_count,
            tuple(made.differences),
            (*warnings, *recording.warnings),
        )


def shadowed(path: Path, registry: Registry, progress: Progress) -> tuple[ShadowSummary, list[str]]:
    """Of a recording from outside: what the recorded configuration would have decided for each pod
    that others placed, when they placed it."""
    with Recording(path) as recording:
        built = registry.build(_recorded(recording), {Binder: NoBinder()})
        sources = sources_by_place(recording.header, sources_of(built.profiles.values()))
        shadowing, now = Shadowing(built.profiles, recording.header.now), recording.header.now
        for step in _steps(recording, sources, progress):
            now = step.now
            if step.event is not None:
                shadowing.step(step.event, now)
        return shadowing.summary(now), recording.warnings


def is_from_outside(path: Path) -> bool:
    with Recording(path) as recording:
        return recording.header.is_from_outside


@dataclass(frozen=True, slots=True)
class Comparison:
    header: Header
    rows: tuple[Compared, ...]  # the first is what was recorded
    warnings: tuple[str, ...]


def compare(
    path: Path, registry: Registry, config_files: Sequence[Path], progress: Progress
) -> Comparison:
    """The recorded arrivals under each of these configurations, on virtual time."""
    with Recording(path) as recording:
        header = recording.header
    names = None if header.is_from_outside else frozenset(header.scheduler_names)
    recorded, rows = AsRecorded(names), []
    warnings: list[str] = []
    for number, config_file in enumerate(config_files):
        named = NamedConfig(str(config_file), read_config(config_file))
        told = partial(_part_of, progress, number, len(config_files))
        row, more = _reran(path, registry, named, told, recorded if number == 0 else None)
        rows.append(row)
        warnings += more
    return Comparison(header, (recorded.compared(), *rows), tuple(dict.fromkeys(warnings)))


def compared_with(
    path: Path, registry: Registry, named: NamedConfig
) -> tuple[Compared, Sequence[str]]:
    """The recorded arrivals under one configuration, and what to warn of."""
    return _reran(path, registry, named, lambda done, total: None)


def _reran(
    path: Path,
    registry: Registry,
    named: NamedConfig,
    progress: Progress,
    recorded: AsRecorded | None = None,
) -> tuple[Compared, Sequence[str]]:
    """`recorded` is given the same, to be compared with."""
    with Recording(path) as recording:
        rerun, warnings = _rerun(recording, registry, named)
        for step in _steps(recording, rerun.sources, progress):
            rerun.take(step)
            if recorded is not None:
                recorded.take(step, rerun.request)
        rerun.end()
        more = [f"{named.name}: {told}" for told in rerun.notes_on_readings()]
        return compared(named.name, rerun), [*warnings, *more, *recording.warnings]


def _steps(
    recording: Recording, sources: Sequence[Hashable | None], progress: Progress
) -> Iterator[Step]:
    for number, step in enumerate(recording.steps(sources)):
        yield step
        if number % _STEPS_BETWEEN_TELLING == 0:
            progress(recording.bytes_read, recording.byte_count)


def _part_of(progress: Progress, number: int, count: int, done: int, total: int) -> None:
    """Of several readings of the same file."""
    progress(number * total + done, count * total)


def _rerun(
    recording: Recording, registry: Registry, named: NamedConfig
) -> tuple[Rerun, Sequence[str]]:
    config_file, loaded = named.name, named.config
    built = registry.build(loaded, {Binder: NoBinder()})
    if not recording.header.is_from_outside:
        _check_names(recording, list(built.profiles), str(config_file))
    config = loaded.config
    machine = Machine(
        built.profiles,
        initial_backoff_seconds=config.pod_initial_backoff_seconds,
        max_backoff_seconds=config.pod_max_backoff_seconds,
    )
    then = _recorded_sources(recording, registry)
    sources = _sources(recording.header, sources_of(built.profiles.values()), then)
    warnings = [f"{config_file}: {warning}" for warning in (*loaded.warnings, *built.warnings)]
    if config.extenders:
        warnings.append(f"{config_file}: extenders are not asked in a replay")
    anew: dict[Hashable, JudgedAnew] = {}
    for each, recorded, source in zip(recording.header.sources, then, sources, strict=True):
        if isinstance(source, TrafficRequest) and isinstance(recorded, TrafficRequest):
            anew[source] = JudgedAnew(recorded, source)
            differs = ", ".join(taken_as_recorded(recorded, source))
        else:
            differs = (
                repr(source) if source is not None and each.description != repr(source) else ""
            )
        if differs and each.description:
            warnings.append(
                f"{config_file}: asks for {each.type} in another way than was recorded; what was "
                f"recorded is taken for it: {differs}"
            )
    takes_all = recording.header.is_from_outside
    return Rerun(machine, sources, takes_all=takes_all, anew=anew), warnings


def _sources(
    header: Header, here: Sequence[Hashable], then: Sequence[Hashable | None]
) -> list[Hashable | None]:
    """The sources by place. Recorded traffic is among them even if no plugin here reads it: links
    are reported by it."""
    found = sources_by_place(header, here)
    if not any(isinstance(each, TrafficRequest) for each in found):
        for place, each in enumerate(header.sources):
            if each.type == TrafficRequest.__name__:
                found[place] = then[place] or TrafficRequest(access=PrometheusAccess(addresses=()))
                break
    return found


def _recorded_sources(recording: Recording, registry: Registry) -> list[Hashable | None]:
    """None where the recorded configuration cannot be built here: it has plugins that are not
    known, say."""
    header = recording.header
    try:
        built = registry.build(_recorded(recording), {Binder: NoBinder()})
    except ConfigError:
        return [None] * len(header.sources)
    return sources_by_place(header, sources_of(built.profiles.values()))


def _recorded(recording: Recording) -> LoadedConfig:
    text = json.dumps(recording.header.config)
    return load_config(text, file=f"{recording.path.name}: its configuration")


def _check_names(recording: Recording, names: list[str], where: str) -> None:
    missing = [name for name in recording.header.scheduler_names if name not in names]
    if missing:
        raise RecordingError(
            f"{recording.path.name}: was recorded for the schedulerName {', '.join(missing)}, and "
            f"{where} has a profile for {', '.join(names)} only"
        )
