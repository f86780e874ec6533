"""A machine that is driven by a test and recorded meanwhile."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lowtide.app.no_binder import NoBinder
from lowtide.app.recording import recorder_maker
from lowtide.app.registry import make_registry
from lowtide.app.replay import Replayed, replay
from lowtide.config.load import load_config
from lowtide.framework.plugin import Binder, BindOutcome, Pod
from lowtide.objects.events import Added, Listed, Modified
from lowtide.objects.kinds import KIND_OF
from lowtide.records.recording_options import RecordingOptions
from lowtide.scheduler.actions import Action, Bind, Decided
from lowtide.scheduler.events import BindingEnded, Event, Turn
from lowtide.scheduler.machine import Machine
from lowtide.testing import ManualClock

CONFIG: Mapping[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "lowtide"}],
}


class RecordedRun:
    """Use it as a context: the recording is complete behind it."""

    def __init__(
        self, file: Path, config: Mapping[str, Any] = CONFIG, plugins: Any = None, **options: Any
    ) -> None:
        loaded = load_config(json.dumps(dict(config)), file="test")
        self.file = file
        self.clock = ManualClock(1000.1)
        built = make_registry(plugins or {}).build(loaded, {Binder: NoBinder()})
        self.profiles = built.profiles
        self.machine = Machine(built.profiles, extenders=loaded.config.extenders)
        self.nodes: list[str | None] = []  # as decided, one after the other
        make = recorder_maker(
            RecordingOptions(file, **options),
            loaded,
            clock=self.clock,
            wall_clock=ManualClock(1_767_225_600.0),
        )
        self.recorder = make(built.profiles)

    def __enter__(self) -> "RecordedRun":
        self.recorder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.recorder.__exit__()

    def step(self, event: Event) -> list[Action]:
        self.clock.advance(seconds=0.1)
        now = self.clock()
        self.recorder.applied(event, now)
        actions = self.machine.step(event, now)
        for action in actions:
            if isinstance(action, Decided):
                self.recorder.decided(action)
                self.nodes.append(action.decision.node_name)
        return actions

    def add(self, *things: Any) -> None:
        for thing in things:
            self.step(Added(thing))

    def listed(self) -> None:
        for name in ("Node", "Pod", *(kind.name for kind in KIND_OF.values())):
            self.step(Listed(name))

    def place_all(self) -> None:
        """Until nobody is ready; every binding ends well, and the watch tells of it."""
        while self.has_work():
            for action in self.step(Turn()):
                if isinstance(action, Bind):
                    self.step(BindingEnded(action.pod.uid, BindOutcome()))
                    self.step(Modified(bound(action.pod, action.node_name)))

    def has_work(self) -> bool:
        now = self.clock()
        has_work = self.machine.has_work(now)
        self.recorder.looked(now)
        return has_work

    def replayed(self, config_file: Path | None = None, plugins: Any = None) -> Replayed:
        return replay(self.file, make_registry(plugins or {}), config_file, lambda *_: None)


def bound(pod: Pod, node_name: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_name))
