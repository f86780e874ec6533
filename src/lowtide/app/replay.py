"""The replay mode: a recording through a fresh machine, without a cluster."""

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import read_config
from lowtide.app.simulate import NamedConfig
from lowtide.config.load import LoadedConfig, load_config
from lowtide.framework.plugin import Binder
from lowtide.framework.registry import Registry
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.request import TrafficRequest
from lowtide.records.recording import Recording
from lowtide.records.recording_header import Header, RecordingError, sources_by_place, sources_of
from lowtide.records.replaying import Difference, Replay
from lowtide.scheduler.machine import Machine
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
    differences: tuple[Difference, ...]
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
        for number, step in enumerate(recording.steps(sources)):
            made.take(step)
            if number % _STEPS_BETWEEN_TELLING == 0:
                progress(recording.bytes_read, recording.byte_count)
        return Replayed(
            header,
            made.event_count,
            made.decision_count,
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
        for number, step in enumerate(recording.steps(sources)):
            now = step.now
            if step.event is not None:
                shadowing.step(step.event, now)
            if number % _STEPS_BETWEEN_TELLING == 0:
                progress(recording.bytes_read, recording.byte_count)
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
    rows, warnings = [], []
    for number, config_file in enumerate(config_files):
        with Recording(path) as recording:
            header = recording.header
            named = NamedConfig(str(config_file), read_config(config_file))
            rerun, more = _rerun(recording, registry, named)
            names = None if header.is_from_outside else frozenset(header.scheduler_names)
            recorded = AsRecorded(names) if number == 0 else None
            for count, step in enumerate(recording.steps(rerun.sources)):
                rerun.take(step)
                if recorded is not None:
                    recorded.take(step)
                if count % _STEPS_BETWEEN_TELLING == 0:
                    done = number * recording.byte_count + recording.bytes_read
                    progress(done, len(config_files) * recording.byte_count)
            rerun.end()
            warnings += [*more, *(recording.warnings if number == 0 else ())]
        if recorded is not None:
            rows.append(recorded.compared())
        rows.append(compared(str(config_file), rerun))
    return Comparison(header, tuple(rows), tuple(warnings))


def compared_with(path: Path, registry: Registry, named: NamedConfig) -> Compared:
    """The recorded arrivals under one configuration."""
    with Recording(path) as recording:
        rerun, _ = _rerun(recording, registry, named)
        for step in recording.steps(rerun.sources):
            rerun.take(step)
        rerun.end()
    return compared(named.name, rerun)


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
    sources = _sources(recording.header, sources_of(built.profiles.values()))
    warnings = [f"{config_file}: {warning}" for warning in (*loaded.warnings, *built.warnings)]
    if config.extenders:
        warnings.append(f"{config_file}: extenders are not asked in a replay")
    for each, source in zip(recording.header.sources, sources, strict=True):
        if source is not None and each.of and each.of != repr(source):
            warnings.append(
                f"{config_file}: asks for {each.type} in another way than was recorded; what was "
                "recorded is taken for it"
            )
    takes_all = recording.header.is_from_outside
    return Rerun(machine, sources, takes_all=takes_all), warnings


def _sources(header: Header, here: Sequence[Hashable]) -> list[Hashable | None]:
    """Where no rule here reads the recorded traffic, links are told of by it all the same."""
    found = sources_by_place(header, here)
    if not any(isinstance(each, TrafficRequest) for each in found):
        for place, each in enumerate(header.sources):
            if each.type == TrafficRequest.__name__:
                found[place] = TrafficRequest(access=PrometheusAccess(addresses=()))
                break
    return found


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
