"""The file form of simulations: what it means, and what is rejected with which words."""

from pathlib import Path

import pytest

from lowtide.scenario.scenario import ScenarioError
from lowtide.scenario.simulation import (
    Arrivals,
    Background,
    NodeGroup,
    OwnerGroup,
    Scraping,
    Simulation,
    Traffic,
    read_simulation,
    simulation_from,
)

BENCH = Path(__file__).resolve().parents[2] / "bench" / "scenarios"

SMALL = """
nodes:
- {count: 2, links: [10G]}
owners:
- {count: 1, pods: 3, traffic: {median: 240M}}
"""


def test_only_what_matters_has_to_be_said() -> None:
    assert simulation_from(SMALL, file="small.yaml") == Simulation(
        nodes=(NodeGroup(count=2, links=("10G",)),),
        owners=(OwnerGroup(count=1, pods=3, traffic=Traffic(median="240M")),),
        arrivals=Arrivals(over_seconds=0.0, by="pod"),
        knowledge="unknown",
        prometheus=Scraping(scrape_interval_seconds=15.0, delay_seconds=0.0),
        settle_seconds=60.0,
    )


def test_everything_can_be_said() -> None:
    text = """
nodes:
- count: 4
  cpu: 16
  memory: 32Gi
  pods: 30
  links: [1G, 2500000000]
  labels: {zone: [a, b], disk: ssd}
  background: {share: [0.1, 0.2], swing: 0.5, period: 12h, noise: 0.1}
owners:
- count: 2
  kind: StatefulSet
  pods: 5
  requests: {cpu: 1}
  traffic: {median: 80M, sigma: 0.2, podSigma: 0, transmit: 0.5}
  lifetime: 1h30m
arrivals: {over: 24h, by: owner}
knowledge: seen
prometheus: {scrapeInterval: 30s, delay: 5s}
settle: 1s
"""
    simulation = simulation_from(text, file="all.yaml")
    assert simulation == Simulation(
        nodes=(
            NodeGroup(
                count=4,
                links=("1G", 2_500_000_000),
                cpu=16,
                memory="32Gi",
                pods=30,
                labels={"zone": ["a", "b"], "disk": "ssd"},
                background=Background((0.1, 0.2), 0.5, 43_200.0, 0.1),
            ),
        ),
        owners=(
            OwnerGroup(
                count=2,
                pods=5,
                traffic=Traffic("80M", 0.2, 0.0, 0.5),
                kind="StatefulSet",
                requests={"cpu": 1},
                lifetime_seconds=5400.0,
            ),
        ),
        arrivals=Arrivals(86_400.0, "owner"),
        knowledge="seen",
        prometheus=Scraping(30.0, 5.0),
        settle_seconds=1.0,
    )
    # Bits become bytes.
    assert simulation.nodes[0].links_bytes_per_second == (125e6, 312.5e6)
    assert simulation.owners[0].traffic.median_bytes_per_second == 10e6
    labels = [simulation.nodes[0].labels_of(number) for number in range(3)]
    assert labels == [{"zone": zone, "disk": "ssd"} for zone in ("a", "b", "a")]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            ("owners:", "speed: 3\nowners:"),
            "s.yaml:4: speed: is not a known field; valid here are nodes, owners, arrivals, "
            "knowledge, prometheus, settle",
            id="rejects a key that there is not",
        ),
        pytest.param(
            ("links:", "link: [1G], links:"),
            's.yaml:3: nodes[0].link: is not a known field, did you mean "links"? valid here are '
            "count, links, cpu, memory, pods, labels, background",
            id="says which key may have been meant",
        ),
        pytest.param(
            ("[10G]", "[10X]"),
            "s.yaml:3: nodes[0].links[0]: must be a bandwidth in bits per second such as 10G or "
            '240M, not the string "10X"',
            id="rejects a link that is no bandwidth",
        ),
        pytest.param(
            ("[10G]", "[]"),
            "s.yaml:3: nodes[0].links: must have at least one bandwidth such as 10G",
            id="rejects nodes without links",
        ),
        pytest.param(
            ("count: 2", "count: 0"),
            "s.yaml:3: nodes[0].count: must be at least 1, not 0",
            id="rejects a group of none",
        ),
        pytest.param(
            ("count: 2", "cpu: true, count: 2"),
            "s.yaml:3: nodes[0].cpu: must be a quantity such as 500m or 64Gi, not the boolean true",
            id="rejects an amount that is no quantity",
        ),
        pytest.param(
            ("count: 2", "labels: {zone: [a, 3]}, count: 2"),
            "s.yaml:3: nodes[0].labels.zone: must be a string or a list of strings, not a list",
            id="rejects a label that is no string",
        ),
        pytest.param(
            ("count: 2", "background: {share: [0.6, 0.1]}, count: 2"),
            "s.yaml:3: nodes[0].background.share: must be two shares from 0 to 1 such as "
            "[0.05, 0.6], not [0.6, 0.1]",
            id="rejects shares that go down",
        ),
        pytest.param(
            ("count: 2", "background: {swing: 2, noise: -1, period: 0s}, count: 2"),
            "s.yaml:3: nodes[0].background.swing: must be from 0 to 1, not 2\n"
            "s.yaml:3: nodes[0].background.noise: must be from 0 to 2, not -1\n"
            "s.yaml:3: nodes[0].background.period: must be longer than 0s, not 0s",
            id="tells every mistake",
        ),
        pytest.param(
            ("{median: 240M}", "{sigma: 1}"),
            "s.yaml:5: owners[0].traffic.median: is missing",
            id="rejects pods without traffic",
        ),
        pytest.param(
            ("240M}", "240M, podSigma: -0.5, transmit: -1}, lifetime: 0s, requests: {cpu: x}"),
            "s.yaml:5: owners[0].traffic.podSigma: must be from 0 to 5, not -0.5\n"
            "s.yaml:5: owners[0].traffic.transmit: must be from 0 to 1000, not -1\n"
            "s.yaml:5: owners[0].requests.cpu: must be a quantity such as 500m or 64Gi, "
            'not the string "x"\n'
            "s.yaml:5: owners[0].lifetime: must be longer than 0s, not 0s",
            id="rejects what no pod can be",
        ),
        pytest.param(
            ("owners:", "knowledge: all\nowners:"),
            's.yaml:4: knowledge: is the string "all"; valid here are annotated, seen, unknown',
            id="rejects a level of knowledge that there is not",
        ),
        pytest.param(
            ("owners:", "arrivals: {over: -1s}\nsettle: -2s\nowners:"),
            "s.yaml:4: arrivals.over: must be at least 0s, not -1s\n"
            "s.yaml:5: settle: must be at least 1s, not -2s",
            id="rejects times that are negative",
        ),
        pytest.param(
            ("owners:", "prometheus: {scrapeInterval: 0s, delay: -1s}\nowners:"),
            "s.yaml:4: prometheus.scrapeInterval: must be from 100ms to 10m, not 0s\n"
            "s.yaml:4: prometheus.delay: must be at least 0s, not -1s",
            id="rejects scrapes without end",
        ),
        pytest.param(
            ("[10G]", "[10, 1e30]"),
            "s.yaml:3: nodes[0].links[0]: must be from 1M to 100T, in bits per second, not the "
            "integer 10\n"
            "s.yaml:3: nodes[0].links[1]: must be from 1M to 100T, in bits per second, not the "
            "number 1e+30",
            id="rejects links that nobody has",
        ),
        pytest.param(
            ("240M}", "5}"),
            "s.yaml:5: owners[0].traffic.median: must be from 1k to 100T, in bits per second, not "
            "the integer 5",
            id="rejects traffic without a unit",
        ),
        pytest.param(
            ("240M}", "240M}, requests: {nvidia.com/gpu: 1}"),
            's.yaml:5: owners[0].requests["nvidia.com/gpu"]: is not simulated; valid are cpu and '
            "memory",
            id="rejects requests that no node can meet",
        ),
        pytest.param(
            ("owners:", "arrivals: {over: 721h}\nsettle: 100000h\nowners:"),
            "s.yaml:4: arrivals.over: must be at most 720h, not 721h\n"
            "s.yaml:5: settle: must be at most 720h, not 100000h",
            id="rejects runs without end",
        ),
        pytest.param(
            ("owners:", "prometheus: {delay: 2h}\nowners:"),
            "s.yaml:4: prometheus.delay: must be at most 1h, not 2h",
            id="rejects samples that come too late",
        ),
        pytest.param(
            ("nodes:\n- {count: 2, links: [10G]}", "nodes: []"),
            "s.yaml:2: nodes: must have at least one group",
            id="rejects a cluster without nodes",
        ),
    ],
)
def test_the_form_is_strict(change: tuple[str, str], problem: str) -> None:
    text = SMALL.replace(*change)
    with pytest.raises(ScenarioError) as caught:
        simulation_from(text, file="s.yaml")
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "s.yaml: a simulation must be one YAML document, not 0", id="none"),
        pytest.param(
            f"{SMALL}---{SMALL}",
            "s.yaml: a simulation must be one YAML document, not 2",
            id="two",
        ),
        pytest.param("- a", "s.yaml:1: must be a mapping, not a list", id="a list"),
        pytest.param(
            "nodes: {", "s.yaml:1: is not valid YAML: expected the node content", id="no YAML"
        ),
    ],
)
def test_a_simulation_is_one_document(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulation_from(text, file="s.yaml")
    assert str(caught.value).startswith(problem)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "gone.yaml"
    with pytest.raises(ScenarioError) as caught:
        read_simulation(path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_the_twelve_models() -> None:
    """Four models at three levels of knowledge, alike in everything else."""
    found = {path.stem: read_simulation(path) for path in sorted(BENCH.glob("*.yaml"))}
    models = {
        f"{links}-{arrivals}{suffix}": (links, arrivals, knowledge)
        for links in ("equal", "mixed")
        for arrivals in ("120s", "burst")
        for suffix, knowledge in (("", "unknown"), ("-seen", "seen"), ("-annotated", "annotated"))
    }
    links = {"equal": ("10G",), "mixed": ("1G", "10G", "25G")}
    over_seconds = {"120s": 120.0, "burst": 0.0}
    assert found == {
        name: Simulation(
            nodes=(
                NodeGroup(
                    count=50,
                    links=links[of_links],
                    cpu=32,
                    memory="64Gi",
                    background=Background(share=(0.05, 0.6)),
                ),
            ),
            owners=(
                OwnerGroup(
                    count=10,
                    pods=200,
                    traffic=Traffic(median="240M", sigma=1.0, pod_sigma=0.5),
                    kind="ReplicaSet",
                    requests={"cpu": "500m", "memory": "512Mi"},
                ),
            ),
            arrivals=Arrivals(over_seconds=over_seconds[arrivals]),
            knowledge=knowledge,  # type: ignore[arg-type]
        )
        for name, (of_links, arrivals, knowledge) in models.items()
    }
