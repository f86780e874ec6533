"""What a scheduler needs to record what it does: a file, a header, and what is kept of objects."""

import datetime
import secrets
from collections.abc import Callable, Mapping
from importlib.metadata import version

from lowtide.app.clocks import Clock, short_rest
from lowtide.config.load import LoadedConfig
from lowtide.framework.profile import Profile
from lowtide.records.config_form import recorded_config
from lowtide.records.event_form import EventWriter
from lowtide.records.hashed_names import HashedNames
from lowtide.records.kept_parts import KeptParts
from lowtide.records.recorder import Recorder
from lowtide.records.recording_header import FORMAT, VERSION, Header, described, sources_of
from lowtide.records.recording_options import RecordingOptions

_SALT_BYTES = 32


def recorder_maker(
    options: RecordingOptions,
    loaded: LoadedConfig,
    *,
    clock: Clock,
    wall_clock: Clock,
    keeps_every_score: bool = False,
    is_from_outside: bool = False,
) -> Callable[[Mapping[str, Profile]], Recorder]:
    """The recorder for the profiles that the configuration has become."""

    def make(profiles: Mapping[str, Profile]) -> Recorder:
        salt = secrets.token_bytes(_SALT_BYTES)
        hashed = HashedNames(salt) if options.hashes_names else None
        sources, config = sources_of(profiles.values()), recorded_config(loaded)
        header = Header(
            format=FORMAT,
            version=VERSION,
            lowtide=version("lowtide"),
            time=_rfc3339(wall_clock()),
            now=clock(),
            names_are_hashed=options.hashes_names,
            keeps_every_score=keeps_every_score,
            is_from_outside=is_from_outside,
            scheduler_names=list(profiles),
            sources=[described(each, with_words=hashed is None) for each in sources],
            annotations=list(options.annotations),
            config=config if hashed is None else hashed.config(config),
        )
        writer = EventWriter(sources, KeptParts(salt, options.annotations), hashed)
        return Recorder(options.file, header=header, writer=writer, rest=short_rest)

    return make


def _rfc3339(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
