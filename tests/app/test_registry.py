"""Which plugins and which configuration a process has."""

from pathlib import Path

import pytest

from lowtide.app.no_binder import NoBinder
from lowtide.app.registry import (
    check_addresses,
    make_registry,
    read_config,
    recommended_config,
)
from lowtide.config.errors import ConfigError
from lowtide.config.load import LoadedConfig
from lowtide.framework.plugin import Binder, Nodes, Pod
from lowtide.plugins import BUILT_IN
from lowtide.plugins.network_traffic import RECOMMENDED_WEIGHT
from lowtide.readings.access import PrometheusAccess
from lowtide.readings.prometheus_query import PrometheusQuery
from lowtide.readings.request import TrafficRequest
from lowtide.testing import make_profile


class SameRack:
    name = "SameRack"

    def score(self, pod: Pod, nodes: Nodes) -> None: ...


def scorers(loaded: LoadedConfig) -> dict[str, int]:
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    return {each.plugin.name: each.weight for each in built.profiles["lowtide"].scorers}


def test_the_built_in_plugins_and_an_outsiders() -> None:
    names = tuple(row.name for row in BUILT_IN)
    assert make_registry({}).names == names
    assert make_registry({"SameRack": SameRack}).names == (*names, "SameRack")


def test_a_name_that_is_taken_is_rejected() -> None:
    with pytest.raises(ConfigError, match="a plugin named NodeName already exists"):
        make_registry({"NodeName": SameRack})


def test_without_a_file_the_defaults_are_used() -> None:
    assert "NetworkTraffic" not in scorers(read_config(None))


def test_naming_prometheus_switches_network_traffic_on() -> None:
    loaded = read_config(None, "http://prometheus:9090")
    assert scorers(loaded) == {**scorers(read_config(None)), "NetworkTraffic": RECOMMENDED_WEIGHT}
    built = make_registry({}).build(loaded, {Binder: NoBinder()})
    (request,) = built.profiles["lowtide"].readings
    assert isinstance(request, TrafficRequest)
    assert request.access.addresses == ("http://prometheus:9090",)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="is missing"),
        pytest.param(b"\xff\xfe", "cannot be read: 'utf-8' codec can't decode", id="is not text"),
    ],
)
def test_a_file_is_told_in_a_sentence_that(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as rejected:
        read_config(path)
    assert str(rejected.value).startswith(f"{path}: {sentence}")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        pytest.param(
            "",
            "profile lowtide: NetworkTraffic: the Prometheus address (prometheusAddress) is "
            "missing; it should look like http://prometheus.example:9090",
            id="rejects a missing address",
        ),
        pytest.param(
            "ftp://prometheus",
            "profile lowtide: NetworkTraffic: the Prometheus address 'ftp://prometheus' is "
            "malformed; it should look like http://prometheus.example:9090",
            id="rejects a malformed one",
        ),
    ],
)
def test_addresses(address: str, sentence: str) -> None:
    built = make_registry({}).build(read_config(None, address), {Binder: NoBinder()})
    with pytest.raises(ConfigError) as rejection:
        check_addresses(built.profiles)
    assert rejection.value.problems == (sentence,)


class Warmth:
    """An outsider's plugin that asks a Prometheus of its own."""

    name = "Warmth"

    def __init__(self) -> None:
        access = PrometheusAccess(addresses=("prometheus:9090", "ftp://cold"))
        self.readings = (PrometheusQuery(access=access, promql="degrees"),)

    def score(self, pod: Pod, nodes: Nodes) -> None: ...


def test_addresses_of_plugins_own_queries_are_checked() -> None:
    profile = make_profile([Warmth()])
    with pytest.raises(ConfigError) as rejection:
        check_addresses({"lowtide": profile})
    assert rejection.value.problems == (
        "profile lowtide: Warmth: the Prometheus address 'ftp://cold' is malformed; it should look "
        "like http://prometheus.example:9090",
    )


@pytest.mark.parametrize("page", ["README.md", "docs/network-traffic.md"])
def test_what_is_written_about_the_weight_is_true(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text()
    assert f"weight: {RECOMMENDED_WEIGHT}" in text


def test_the_recommended_profile_is_that_of_the_example(examples: Path) -> None:
    file = examples / "04-recommended" / "scheduler-config.yaml"
    assert scorers(read_config(file)) == scorers(recommended_config())
