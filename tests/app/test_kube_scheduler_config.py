"""The configuration for kube-scheduler that the extender prints: read back, and by the real one."""

import datetime
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from lowtide.app.kube_scheduler_config import kube_scheduler_config
from lowtide.config.errors import ConfigError
from lowtide.config.extender_settings import ExtenderSettings
from lowtide.config.load import load_config
from lowtide.config.types import Extender, ExtenderTls, KubeSchedulerConfiguration
from lowtide.framework.plugin import IntArray, Nodes, Pod, Rejection
from lowtide.testing import make_profile
from realparts.certificates import Authority
from realparts.users import write_kubeconfig

URL = "http://127.0.0.1:8001/scheduler"
HTTPS_URL = "https://127.0.0.1:8001/scheduler"
FOLDER = "/etc/kubernetes/lowtide"


class Filtering:
    name = "Filtering"

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        yield from ()


class Scoring:
    name = "Scoring"

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.zeros(len(nodes), np.int64)


class ScoringToo(Scoring):
    name = "ScoringToo"


def printed(
    *plugins: Any,
    names: tuple[str, ...] = ("second",),
    url: str = URL,
    tls: bool = False,
    client_certificate: bool = False,
    **settings: Any,
) -> str:
    weights = {"Scoring": 2, "ScoringToo": 7}
    return kube_scheduler_config(
        url_prefix=url,
        profiles={name: make_profile(plugins, weights, name) for name in names},
        settings=dict.fromkeys(names, ExtenderSettings(**settings)),
        tls=tls,
        client_certificate=client_certificate,
    )


def read(text: str) -> KubeSchedulerConfiguration:
    loaded = load_config(text, file="printed.yaml")
    assert loaded.warnings == ()
    return loaded.config


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param(
            [Filtering()],
            Extender(URL, filter_verb="filter", preempt_verb="preempt"),
            id="filters",
        ),
        pytest.param(
            [Scoring()], Extender(URL, prioritize_verb="prioritize", weight=2), id="scores"
        ),
        pytest.param(
            [Filtering(), Scoring(), ScoringToo()],
            Extender(
                URL,
                filter_verb="filter",
                preempt_verb="preempt",
                prioritize_verb="prioritize",
                weight=9,
            ),
            id="does both, with the sum of its weights",
        ),
    ],
)
def test_the_verbs_of_a_profile_that(plugins: list[Any], want: Extender) -> None:
    (extender,) = read(printed(*plugins)).extenders
    usual = {"node_cache_capable": True, "ignorable": True, "http_timeout_seconds": 2.0}
    assert extender == replace(want, **usual)


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param({}, (True, 2.0), id="ignored where it fails, by default"),
        pytest.param({"empty_result": "error"}, (False, 2.0), id="not ignored where Error counts"),
        pytest.param({"names_budget_seconds": 1.2}, (True, 3.0), id="waited for beyond its budget"),
        pytest.param(
            {"nodes_budget_seconds": 4.0}, (True, 8.0), id="waited for where it is asked to preempt"
        ),
    ],
)
def test_by_its_settings_the_extender_is(
    settings: dict[str, Any], want: tuple[bool, float]
) -> None:
    (extender,) = read(printed(Filtering(), **settings)).extenders
    assert (extender.ignorable, extender.http_timeout_seconds) == want


def test_where_one_profile_answers_with_errors_no_failure_is_ignored() -> None:
    text = kube_scheduler_config(
        url_prefix=URL,
        profiles={
            "one": make_profile([Scoring()], {"Scoring": 2}, "one"),
            "two": make_profile([Filtering(), ScoringToo()], {"ScoringToo": 7}, "two"),
        },
        settings={"one": ExtenderSettings(), "two": ExtenderSettings(empty_result="error")},
        tls=False,
        client_certificate=False,
    )
    config = read(text)
    (extender,) = config.extenders
    assert [profile.scheduler_name for profile in config.profiles] == ["one", "two"]
    assert (extender.ignorable, extender.weight, extender.filter_verb) == (False, 7, "filter")


@pytest.mark.parametrize(
    ("url", "tls", "client_certificate", "want"),
    [
        pytest.param(URL, False, False, None, id="none over HTTP"),
        pytest.param(
            HTTPS_URL, True, False, ExtenderTls(ca_file=f"{FOLDER}/ca.crt"), id="an authority"
        ),
        pytest.param(
            HTTPS_URL,
            True,
            True,
            ExtenderTls(
                ca_file=f"{FOLDER}/ca.crt",
                cert_file=f"{FOLDER}/client.crt",
                key_file=f"{FOLDER}/client.key",
            ),
            id="a certificate of its own where one is asked for",
        ),
        pytest.param(
            HTTPS_URL,
            False,
            False,
            ExtenderTls(ca_file=f"{FOLDER}/ca.crt"),
            id="an authority where something before Lowtide serves HTTPS",
        ),
    ],
)
def test_kube_scheduler_needs(
    url: str, tls: bool, client_certificate: bool, want: ExtenderTls | None
) -> None:
    text = printed(Filtering(), url=url, tls=tls, client_certificate=client_certificate)
    (extender,) = read(text).extenders
    assert (extender.url_prefix, extender.enable_https) == (url, want is not None)
    assert extender.tls_config == want


@pytest.mark.parametrize(
    ("name", "lease", "kubeconfig"),
    [
        pytest.param("second", "second", "", id="a second scheduler has a lease of its own"),
        pytest.param(
            "default-scheduler",
            "kube-scheduler",
            "/etc/kubernetes/scheduler.conf",
            id="the default one keeps the usual lease and kubeadm's kubeconfig",
        ),
    ],
)
def test_who_runs_it(name: str, lease: str, kubeconfig: str) -> None:
    config = read(printed(Filtering(), names=(name,)))
    assert [profile.scheduler_name for profile in config.profiles] == [name]
    assert config.leader_election.resource_name == lease
    assert config.client_connection.kubeconfig == kubeconfig
    assert config.percentage_of_nodes_to_score == 100


def test_binding_is_left_to_who_wants_it() -> None:
    (extender,) = read(printed(Filtering())).extenders
    assert extender.bind_verb == ""
    (extender,) = read(printed(Filtering(), bind=True)).extenders
    assert extender.bind_verb == "bind"


@pytest.mark.parametrize(
    ("plugins", "url", "sentence"),
    [
        pytest.param(
            [],
            URL,
            "profile second: no plugin filters or scores nodes, so there is nothing to ask the "
            "extender; enable one, such as NetworkTraffic",
            id="there is nothing to ask",
        ),
        pytest.param(
            [Filtering()],
            URL,
            "the URL must begin with https://, as Lowtide serves HTTPS, and is "
            "http://127.0.0.1:8001/scheduler",
            id="the URL and what is served differ",
        ),
    ],
)
def test_it_is_told_that(plugins: list[Any], url: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as rejected:
        printed(*plugins, url=url, tls=bool(plugins))
    assert str(rejected.value) == sentence


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("lowtide-extender:8001", id="has no scheme"),
        pytest.param("ftp://lowtide-extender:8001", id="has another scheme"),
        pytest.param("http://:8001/scheduler", id="has no host"),
        pytest.param("http://[::1/scheduler", id="is none"),
        pytest.param("http://lowtide-extender:0/scheduler", id="has port 0"),
        pytest.param("http://lowtide-extender:65536/scheduler", id="has a port beyond the last"),
        pytest.param("http://lowtide-extender:http/scheduler", id="has a port in words"),
        pytest.param("http://lowtide-extender:8001/scheduler?a=b", id="has a query"),
        pytest.param("http://lowtide extender:8001/scheduler", id="has a space"),
    ],
)
def test_a_url_is_rejected_that(url: str) -> None:
    with pytest.raises(ConfigError) as rejected:
        printed(Filtering(), url=url)
    assert str(rejected.value) == (
        "the URL must be such as http://lowtide-extender:8001/scheduler, with a port from 1 to "
        f"65535, and is {url}"
    )


@pytest.mark.parametrize("port", ["", ":1", ":65535"])
def test_the_url_is_printed_as_given(port: str) -> None:
    url = f"http://lowtide-extender{port}/scheduler"
    (extender,) = read(printed(Filtering(), url=url)).extenders
    assert extender.url_prefix == url


def test_a_profile_that_only_scores_is_not_waited_for_as_if_it_preempted() -> None:
    text = printed(Scoring(), nodes_budget_seconds=4.0)
    (extender,) = read(text).extenders
    assert extender.http_timeout_seconds == 2.0
    assert "within 50 ms, if need be" in text


def test_the_time_of_each_answer_is_told() -> None:
    text = printed(Filtering(), names_budget_seconds=0.2, nodes_budget_seconds=4.0, bind=True)
    assert "  # Lowtide answers within 200 ms (preempt: 4000 ms), if need be neutrally" in text
    assert "After 1.5 s, at the latest, it answers what is known of a binding." in text


@pytest.mark.real("kube-scheduler")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="over HTTP"),
        pytest.param({"empty_result": "error", "names": ("one", "two")}, id="for two profiles"),
        pytest.param({"url": HTTPS_URL, "tls": True}, id="over HTTPS"),
        pytest.param(
            {"url": HTTPS_URL, "tls": True, "client_certificate": True},
            id="with a client certificate",
        ),
        pytest.param({"names": ("default-scheduler",)}, id="for the default scheduler"),
    ],
)
def test_the_real_kube_scheduler_takes_it(
    arguments: dict[str, Any], parts: Callable[..., dict[str, Path]], tmp_path: Path
) -> None:
    """It makes all of its parts of it, clients of the extender too, and writes it down again."""
    program = parts("kube-scheduler")["kube-scheduler"]
    text = printed(Filtering(), Scoring(), bind=True, **arguments)
    for missing in (FOLDER, "/etc/kubernetes"):
        text = text.replace(missing, str(tmp_path))
    write_files(tmp_path)
    file, written = tmp_path / "printed.yaml", tmp_path / "written.yaml"
    file.write_text(text)
    flags = [f"--config={file}", f"--write-config-to={written}", "--master=http://127.0.0.1:9"]
    done = subprocess.run(
        [program, *flags], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.count('"command failed"')) == (0, 0), done.stderr
    before, after = read(text), load_config(written.read_text(), file="written.yaml").config
    assert after.extenders == before.extenders
    assert after.leader_election == before.leader_election
    assert after.percentage_of_nodes_to_score == 100
    names = [profile.scheduler_name for profile in after.profiles]
    assert names == [profile.scheduler_name for profile in before.profiles]


def write_files(folder: Path) -> None:
    """What the printed configuration names: certificates, and kubeadm's kubeconfig."""
    authority = Authority(folder, now=datetime.datetime.now(datetime.UTC))
    authority.write_own_certificate()
    authority.sign_client("client", [])
    write_kubeconfig(
        folder / "scheduler.conf",
        url="https://127.0.0.1:9",
        ca_file=authority.ca_file,
        credentials={"token": "none"},
    )
