"""By which label a series came to its node, and which label could bring others to theirs.

Used by the table and by the check for labels that match nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lowtide.doctor import fixes
from lowtide.doctor.evidence import MATCH_LABELS, Survey, is_address
from lowtide.readings.matching import NodeIdentity, host_of
from lowtide.readings.request import MatchLabel
from lowtide.readings.series import Series

_EXACT: Final = ("node", "kubernetes_node")
_NOT_OF_TARGETS: Final = ("__name__", "device", "job")
_UP_TO_THE_FIRST_DOT: Final = "([^.:]+).*"


@dataclass(frozen=True, slots=True)
class Naming:
    """A label that Lowtide does not go by, and the nodes it names."""

    label: str
    example: str
    rows: frozenset[int]
    pattern: str = ""
    replacement: str = ""

    @property
    def fix(self) -> str:
        return fixes.copied_label(self.label, pattern=self.pattern, replacement=self.replacement)


def matched_by(survey: Survey, series: Series, row: int) -> str:
    """Such as `node`, `nodename`, or `instance (IP:port)`; empty where nothing matched."""
    wanted = survey.evidence.request.match_label
    tried = MATCH_LABELS[1:] if wanted == "auto" else (wanted,)
    found = [label for label in tried if survey.matcher(label).candidates([series])[0] == (row,)]
    if found and found[0] in _EXACT:
        return found[0]
    shown = [_described(label, series) for label in found]
    if not shown and survey.matcher().candidates([series])[0] == (row,):
        return "nodename and instance together"
    return ", ".join(shown)


def _described(label: str, series: Series) -> str:
    if label == "nodename":
        return "nodename" if "nodename" in series.labels else "nodename (uname)"
    if label != "instance":
        return label
    instance = series.labels.get("instance", "")
    host = host_of(instance)
    form = "IP" if is_address(host) else "name"
    has_port = instance.lower().strip("[]") != host
    return f"instance ({form}:port)" if has_port else f"instance ({form})"


def other_setting(survey: Survey, rows: set[int]) -> tuple[MatchLabel, set[int]] | None:
    """The `nodeLabel` by which most of these nodes would be matched, and which; `auto` wins
    where it does as well as another."""
    found = [(label, rows & survey.rows_of(survey.unmatched, label)) for label in MATCH_LABELS]
    label, matched = max(found, key=lambda each: len(each[1]))
    return (label, matched) if matched else None


def naming_of(
    series: Sequence[Series], identities: Sequence[NodeIdentity], rows: set[int]
) -> Naming | None:
    """The label whose values name most of these nodes: as they are, before the first dot, or
    with the domain that the nodes' names have and the values lack."""
    values: dict[str, dict[str, None]] = {}
    for one in series:
        for label, value in one.labels.items():
            if label not in _NOT_OF_TARGETS:
                values.setdefault(label, {})[value] = None
    by_alias: dict[str, int] = {}
    by_short: dict[str, int] = {}
    for row in rows:
        # The label `node` has to be the name: an address would still not do.
        name = identities[row].name
        by_alias[name] = row
        short, _, domain = name.partition(".")
        if domain:
            by_short[short] = row
    namings = [
        naming
        for label, seen in values.items()
        for naming in _namings(label, list(seen), identities, by_alias, by_short)
    ]
    return max(namings, key=lambda naming: len(naming.rows), default=None)


def _namings(
    label: str,
    seen: Sequence[str],
    identities: Sequence[NodeIdentity],
    by_alias: Mapping[str, int],
    by_short: Mapping[str, int],
) -> list[Naming]:
    found = []
    whole = {by_alias[value]: value for value in seen if value in by_alias}
    if whole:
        found.append(Naming(label, _example(whole), frozenset(whole)))
    shortened = {
        by_alias[short]: value
        for value in seen
        if (short := value.partition(":")[0].partition(".")[0]) in by_alias and value != short
    }
    if shortened:
        found.append(
            Naming(
                label,
                _example(shortened),
                frozenset(shortened),
                _UP_TO_THE_FIRST_DOT,
                replacement="",
            )
        )
    lengthened = {
        by_short[short]: value for value in seen if (short := value.partition(":")[0]) in by_short
    }
    domains = {identities[row].name.partition(".")[2] for row in lengthened}
    if len(domains) == 1:
        found.append(
            Naming(
                label,
                _example(lengthened),
                frozenset(lengthened),
                _UP_TO_THE_FIRST_DOT,
                f"$1.{domains.pop()}",
            )
        )
    return found


def _example(values: Mapping[int, str]) -> str:
    return values[min(values)]
