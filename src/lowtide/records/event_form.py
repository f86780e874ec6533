"""The lines of a recording: each event of the machine with its `now`, and each decision.

`EventWriter` makes the lines for `recorder`; `EventReader` makes events of them for `recording`."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from lowtide.framework.plugin import BindOutcome
from lowtide.objects.events import Added, Deleted, Listed, Modified, Unavailable
from lowtide.objects.kinds import KIND_OF, NODE, POD, Kind
from lowtide.objects.pod import Pod
from lowtide.records.answer_form import AnswerForm, answer_of, form_of_answer
from lowtide.records.decision_form import DecisionForm, decision_form, with_hashed_names
from lowtide.records.hashed_names import HashedNames
from lowtide.records.kept_parts import KeptParts
from lowtide.records.reading_form import ReadingForm, ReadingReader, ReadingWriter
from lowtide.records.recording_header import RecordingError
from lowtide.scheduler.actions import Decided
from lowtide.scheduler.events import (
    BindingEnded,
    BindingLookedUp,
    Event,
    EvictionEnded,
    ExtendersAnswered,
    PermitAnswered,
    ReadingPublished,
    Turn,
)

LEFT_OUT = "left out"

_READ: tuple[Kind[Any], ...] = (POD, NODE, *KIND_OF.values())
_KINDS: Mapping[str, type] = {kind.name: kind.type for kind in _READ}
_NAME_OF_KIND = {kind: name for name, kind in _KINDS.items()}


class _Line(msgspec.Struct, frozen=True, tag_field="event", rename="camel", omit_defaults=True):
    now: float


class AddedLine(_Line, frozen=True, tag="Added"):
    kind: str
    object: msgspec.Raw


class ModifiedLine(_Line, frozen=True, tag="Modified"):
    kind: str
    object: msgspec.Raw


class DeletedLine(_Line, frozen=True, tag="Deleted"):
    kind: str
    object: msgspec.Raw


class ListedLine(_Line, frozen=True, tag="Listed"):
    kind: str


class UnavailableLine(_Line, frozen=True, tag="Unavailable"):
    kind: str
    status: int
    message: str = ""


class ReadingLine(_Line, frozen=True, tag="ReadingPublished"):
    source: int
    reading: ReadingForm


class BindingEndedLine(_Line, frozen=True, tag="BindingEnded"):
    uid: str
    error: str | None = None
    is_gone: bool = False


class BindingLookedUpLine(_Line, frozen=True, tag="BindingLookedUp"):
    uid: str
    error: str | None = None
    is_gone: bool = False


class EvictionEndedLine(_Line, frozen=True, tag="EvictionEnded"):
    uid: str
    evicted: list[Pod] = []
    gone: list[str] = []
    error: str | None = None


class PermitAnsweredLine(_Line, frozen=True, tag="PermitAnswered"):
    uid: str
    plugin_name: str
    rejection: str | None = None


class ExtendersAnsweredLine(_Line, frozen=True, tag="ExtendersAnswered"):
    answer: AnswerForm


class TurnLine(_Line, frozen=True, tag="Turn"):
    pass


class LookedLine(_Line, frozen=True, tag="Looked"):
    """Somebody looked whether there is work, and pods whose time had come were moved by that."""


class EndLine(msgspec.Struct, frozen=True, tag_field="event", tag="End", omit_defaults=True):
    """The last one. Where something went wrong, `cut` says what."""

    cut: str = ""


EventLine = (
    AddedLine
    | ModifiedLine
    | DeletedLine
    | ListedLine
    | UnavailableLine
    | ReadingLine
    | BindingEndedLine
    | BindingLookedUpLine
    | EvictionEndedLine
    | PermitAnsweredLine
    | ExtendersAnsweredLine
    | TurnLine
    | LookedLine
)
Line = EventLine | DecisionForm | EndLine


def _plain(value: object) -> object:
    """What is computed may be a number of numpy's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be recorded")


encode = msgspec.json.Encoder(enc_hook=_plain).encode


class EventWriter:
    """Lines in the order of the events. `sources` are what readings are published under."""

    def __init__(
        self, sources: Sequence[Hashable], kept: KeptParts, hashed: HashedNames | None = None
    ) -> None:
        self._place_of = {source: place for place, source in enumerate(sources)}
        self._readings = [ReadingWriter(hashed) for _ in sources]
        self._kept = kept
        self._hashed = hashed

    def event_line(self, event: Event, now: float) -> Line | None:
        """None for what is no concern of the profiles' plugins."""
        match event:
            case Turn():
                return TurnLine(now)
            case Added(thing):
                return AddedLine(now, _NAME_OF_KIND[type(thing)], self._object(thing))
            case Modified(thing):
                return ModifiedLine(now, _NAME_OF_KIND[type(thing)], self._object(thing))
            case Deleted(thing):
                return DeletedLine(now, _NAME_OF_KIND[type(thing)], self._object(thing))
            case Listed(kind):
                return ListedLine(now, kind)
            case Unavailable(kind, status, message):
                return UnavailableLine(now, kind, status, self._words(message) or "")
            case ReadingPublished(source, reading):
                place = self._place_of.get(source)
                if place is None:
                    return None
                return ReadingLine(now, place, self._readings[place].form(reading))
            case BindingEnded(uid, outcome):
                return BindingEndedLine(
                    now, self._uid(uid), self._words(outcome.error), outcome.is_gone
                )
            case BindingLookedUp(uid, outcome):
                return BindingLookedUpLine(
                    now, self._uid(uid), self._words(outcome.error), outcome.is_gone
                )
            case EvictionEnded(uid, evicted, gone, error):
                pods = [self._kept_of(each) for each in evicted]
                return EvictionEndedLine(
                    now, self._uid(uid), pods, sorted(map(self._uid, gone)), self._words(error)
                )
            case PermitAnswered(uid, plugin_name, rejection):
                return PermitAnsweredLine(now, self._uid(uid), plugin_name, self._words(rejection))
            case ExtendersAnswered(answer):
                return ExtendersAnsweredLine(now, form_of_answer(answer, self._hashed))

    def decision_line(self, decided: Decided) -> DecisionForm:
        form = decision_form(decided, with_reasons=self._hashed is None)
        return form if self._hashed is None else with_hashed_names(form, self._hashed)

    def _object(self, thing: Any) -> msgspec.Raw:
        return msgspec.Raw(encode(self._kept_of(thing)))

    def _kept_of(self, thing: Any) -> Any:
        kept = self._kept.without_left_out(thing)
        return kept if self._hashed is None else self._hashed.with_hashed_names(kept)

    def _uid(self, uid: str) -> str:
        return uid if self._hashed is None else self._hashed.uid(uid)

    def _words(self, text: str | None) -> str | None:
        """Words of others may have names in them."""
        return text if self._hashed is None or text is None else LEFT_OUT


class EventReader:
    """Events in the order of the lines. `sources` stand for the recorded ones by their places;
    None where nobody reads them."""

    def __init__(self, sources: Sequence[Hashable | None]) -> None:
        self._sources = sources
        self._readings = [ReadingReader() for _ in sources]
        self._decoders: dict[str, Callable[[msgspec.Raw], Any]] = {
            name: msgspec.json.Decoder(kind).decode for name, kind in _KINDS.items()
        }

    def event(self, line: EventLine) -> Event | None:
        """None where there is nothing to apply."""
        match line:
            case TurnLine():
                return Turn()
            case AddedLine():
                return Added(self._object(line.kind, line.object))
            case ModifiedLine():
                return Modified(self._object(line.kind, line.object))
            case DeletedLine():
                return Deleted(self._object(line.kind, line.object))
            case ListedLine():
                return Listed(line.kind)
            case UnavailableLine():
                return Unavailable(line.kind, line.status, line.message)
            case ReadingLine():
                return self._reading(line)
            case BindingEndedLine():
                return BindingEnded(line.uid, BindOutcome(line.error, line.is_gone))
            case BindingLookedUpLine():
                return BindingLookedUp(line.uid, BindOutcome(line.error, line.is_gone))
            case EvictionEndedLine():
                gone = frozenset(line.gone)
                return EvictionEnded(line.uid, tuple(line.evicted), gone, line.error)
            case PermitAnsweredLine():
                return PermitAnswered(line.uid, line.plugin_name, line.rejection)
            case ExtendersAnsweredLine():
                return ExtendersAnswered(answer_of(line.answer))
            case LookedLine():
                return None

    def _object(self, kind: str, body: msgspec.Raw) -> Any:
        decode = self._decoders.get(kind)
        if decode is None:
            known = ", ".join(_KINDS)
            raise RecordingError(f"the kind {kind!r} is not known; {known} are")
        return decode(body)

    def _reading(self, line: ReadingLine) -> ReadingPublished | None:
        if not 0 <= line.source < len(self._sources):
            count = len(self._sources)
            raise RecordingError(f"source {line.source} is not one of the header's {count}")
        reading = self._readings[line.source].reading(line.reading)
        source = self._sources[line.source]
        return None if source is None else ReadingPublished(source, reading)
