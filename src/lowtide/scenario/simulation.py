"""Reads a Simulation from a file: nodes with links, owners of pods, and what is known about them.

`lowtide simulate` reads it; the simulator draws a world from it. Bandwidths are bits per second.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from lowtide.config.decoding import Decoder
from lowtide.config.errors import ConfigError, Path, Problem, value_text
from lowtide.config.types import Duration
from lowtide.config.yaml_document import Document, read_documents
from lowtide.objects.quantity import QuantityError, parse_nano
from lowtide.objects.requests import CPU, MEMORY
from lowtide.readings.amounts import bytes_per_second
from lowtide.scenario.scenario import ScenarioError

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Problems = Iterator[tuple[Path, str]]

_LONGEST_HOURS = 30 * 24  # for each of the fields that make a run long
_MOST_BANDWIDTH = "100T"


class _Fields(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    pass


class Background(_Fields, frozen=True):
    """A node's traffic that is not from pods, as a share of its link in each direction.

    Each node draws its mean from `share`, (lowest, highest). The traffic swings around the mean by
    the fraction `swing`, once per `period`. `noise` is the sigma of a factor drawn each minute."""

    share: tuple[float, ...] = (0.0, 0.0)
    swing: float = 0.0
    period_seconds: Duration = field(default=86_400.0, name="period")
    noise: float = 0.0

    def problems(self) -> Problems:
        if len(self.share) != 2 or not 0 <= self.share[0] <= self.share[1] <= 1:
            shown = f"[{', '.join(f'{each:g}' for each in self.share)}]"
            yield ("share",), f"must be two shares from 0 to 1 such as [0.05, 0.6], not {shown}"
        yield from _between(("swing",), self.swing, 0, 1)
        yield from _between(("noise",), self.noise, 0, 2)
        yield from _positive(("period",), self.period_seconds)


class NodeGroup(_Fields, frozen=True):
    """A group of similar nodes. Each draws one of `links`. A label with a list gives its values to
    the nodes in turn."""

    count: Count
    links: tuple[Any, ...]
    cpu: Any = "32"
    memory: Any = "64Gi"
    pods: Count = 110
    labels: dict[str, Any] = {}
    background: Background = Background()

    @property
    def links_bytes_per_second(self) -> tuple[float, ...]:
        return tuple(bytes_per_second(str(link)) for link in self.links)

    def labels_of(self, number: int) -> dict[str, str]:
        return {
            key: value if isinstance(value, str) else value[number % len(value)]
            for key, value in self.labels.items()
        }

    def problems(self) -> Problems:
        if not self.links:
            yield ("links",), "must have at least one bandwidth such as 10G"
        for index, link in enumerate(self.links):
            yield from _bandwidth(("links", index), link, least="1M")
        yield from _quantity(("cpu",), self.cpu)
        yield from _quantity(("memory",), self.memory)
        for key, value in self.labels.items():
            values = value if isinstance(value, list) and value else [value]
            if not all(isinstance(each, str) for each in values):
                text = f"must be a string or a list of strings, not {value_text(value)}"
                yield ("labels", key), text
        yield from _problems_below(("background",), self.background)


class Traffic(_Fields, frozen=True):
    """The traffic of pods. The owners' means are log-normal around `median` with `sigma`; the pods
    of an owner are log-normal around its mean with `podSigma`. A pod sends `transmit` times what it
    receives."""

    median: Any
    sigma: float = 1.0
    pod_sigma: float = 0.5
    transmit: float = 1.0

    @property
    def median_bytes_per_second(self) -> float:
        return bytes_per_second(str(self.median))

    def problems(self) -> Problems:
        yield from _bandwidth(("median",), self.median, least="1k")
        yield from _between(("sigma",), self.sigma, 0, 5)
        yield from _between(("podSigma",), self.pod_sigma, 0, 5)
        yield from _between(("transmit",), self.transmit, 0, 1000)


class OwnerGroup(_Fields, frozen=True):
    """A group of similar owners. `pods` is their total; each pod draws its owner.

    `lifetime` is the mean of an exponential distribution; without it, pods run forever."""

    count: Count
    pods: Count
    traffic: Traffic
    kind: Literal["ReplicaSet", "StatefulSet", "Job"] = "ReplicaSet"
    requests: dict[str, Any] = field(default_factory=lambda: {"cpu": "500m", "memory": "512Mi"})
    lifetime_seconds: Duration | None = field(default=None, name="lifetime")

    def problems(self) -> Problems:
        yield from _problems_below(("traffic",), self.traffic)
        for resource, amount in self.requests.items():
            if resource not in (CPU, MEMORY):
                text = f"is not simulated; valid are {CPU} and {MEMORY}"
                yield ("requests", str(resource)), text
            yield from _quantity(("requests", str(resource)), amount)
        if self.lifetime_seconds is not None:
            yield from _positive(("lifetime",), self.lifetime_seconds)


class Arrivals(_Fields, frozen=True):
    """Pods arrive at random times within `over`, each on its own or all of an owner together."""

    over_seconds: Duration = field(default=0.0, name="over")
    by: Literal["pod", "owner"] = "pod"

    def problems(self) -> Problems:
        yield from _up_to_hours(("over",), self.over_seconds, _LONGEST_HOURS)


class Scraping(_Fields, frozen=True):
    """How often Prometheus scrapes, and how long after that a sample can be queried."""

    scrape_interval_seconds: Duration = field(default=15.0, name="scrapeInterval")
    delay_seconds: Duration = field(default=0.0, name="delay")

    def problems(self) -> Problems:
        if not 0.1 <= self.scrape_interval_seconds <= 600:
            shown = f"{self.scrape_interval_seconds:g}s"
            yield ("scrapeInterval",), f"must be from 100ms to 10m, not {shown}"
        yield from _up_to_hours(("delay",), self.delay_seconds, 1)


class Simulation(_Fields, frozen=True):
    """The content of a file. `knowledge` is what is known about a pod's traffic before it runs:
    nothing (unknown), the traffic of its owner's pods before the simulation (seen), or its own
    (annotated). The run continues for `settle` after the last arrival."""

    nodes: tuple[NodeGroup, ...]
    owners: tuple[OwnerGroup, ...]
    arrivals: Arrivals = Arrivals()
    knowledge: Literal["unknown", "seen", "annotated"] = "unknown"
    prometheus: Scraping = Scraping()
    settle_seconds: Duration = field(default=60.0, name="settle")

    def problems(self) -> Problems:
        for name, groups in (("nodes", self.nodes), ("owners", self.owners)):
            if not groups:
                yield (name,), "must have at least one group"
            for index, group in enumerate(groups):
                yield from _problems_below((name, index), group)
        yield from _problems_below(("arrivals",), self.arrivals)
        yield from _problems_below(("prometheus",), self.prometheus)
        if self.settle_seconds < 1:  # the last pod needs time to be placed
            yield ("settle",), f"must be at least 1s, not {self.settle_seconds:g}s"
        else:
            yield from _up_to_hours(("settle",), self.settle_seconds, _LONGEST_HOURS)


def read_simulation(path: FilePath) -> Simulation:
    """Read a file. Raises ScenarioError with all mistakes, one per line."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(f"{path}: cannot be read: {reason}") from None
    return simulation_from(text, file=path.name)


def simulation_from(text: str, *, file: str) -> Simulation:
    try:
        documents = read_documents(text, file=file)
    except ConfigError as error:
        raise ScenarioError(str(error)) from None
    if len(documents) != 1:
        raise ScenarioError(f"{file}: a simulation must be one YAML document, not {len(documents)}")
    (document,) = documents
    decoder = Decoder()
    simulation = decoder.decode(Simulation, document.data)
    problems = [*document.problems, *decoder.problems]
    if not problems:
        problems = [Problem(path, text) for path, text in simulation.problems()]
    if problems:
        raise ScenarioError("\n".join(_sentences(document, problems)))
    return simulation


def _sentences(document: Document, problems: Iterable[Problem]) -> Iterator[str]:
    for problem in sorted(problems, key=lambda each: document.line(each.path)):
        yield document.problem(problem.path, problem.text)


def _problems_below(path: Path, part: Any) -> Problems:
    for inner, text in part.problems():
        yield (*path, *inner), text


def _bandwidth(path: Path, value: Any, *, least: str) -> Problems:
    """Check a bandwidth. Values below `least` are probably numbers without a unit."""
    try:
        given = bytes_per_second(_text(value))
    except QuantityError:
        expected = "a bandwidth in bits per second such as 10G or 240M"
        yield path, f"must be {expected}, not {value_text(value)}"
        return
    if not bytes_per_second(least) <= given <= bytes_per_second(_MOST_BANDWIDTH):
        span = f"from {least} to {_MOST_BANDWIDTH}, in bits per second"
        yield path, f"must be {span}, not {value_text(value)}"


def _quantity(path: Path, value: Any) -> Problems:
    try:
        if parse_nano(_text(value)) < 0:
            raise QuantityError
    except QuantityError:
        yield path, f"must be a quantity such as 500m or 64Gi, not {value_text(value)}"


def _text(value: Any) -> str:
    """The value as text. Raises QuantityError if it is neither a string nor a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError
    return str(value)


def _between(path: Path, value: float, lowest: float, highest: float) -> Problems:
    if not lowest <= value <= highest:
        yield path, f"must be from {lowest:g} to {highest:g}, not {value:g}"


def _positive(path: Path, seconds: float) -> Problems:
    if seconds <= 0:
        yield path, f"must be longer than 0s, not {seconds:g}s"


def _up_to_hours(path: Path, seconds: float, hours: int) -> Problems:
    if seconds < 0:
        yield path, f"must be at least 0s, not {seconds:g}s"
    elif seconds > hours * 3600:
        yield path, f"must be at most {hours}h, not {seconds / 3600:.6g}h"
