"""`lowtide extender`: what is told before it runs, and what is printed for kube-scheduler."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import Run

NEEDED = ("PrioritySort", "DefaultBinder")
PRINT = "--print-kube-scheduler-config"
NOBODY = "--master=http://127.0.0.1:9"  # where nobody listens


def write_config(*plugins: str, **fields: Any) -> None:
    enabled = [{"name": name} for name in (*NEEDED, *plugins)]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "asking",
                "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
            }
        ],
        **fields,
    }
    Path("config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def test_it_prints_where_it_will_listen(run: Run) -> None:
    write_config("NodeUsage")
    done = run("extender", "--config=config.yaml", PRINT, "--port=8002", "--url-prefix=/asked")
    assert (done.exit_code, done.stderr) == (0, "")
    (extender,) = yaml.safe_load(done.stdout)["extenders"]
    assert extender["urlPrefix"] == "http://127.0.0.1:8002/asked"


def test_a_url_says_where_else(run: Run) -> None:
    write_config("NodeUsage")
    url = "http://lowtide-extender.kube-system.svc:8001/scheduler"
    vague = ["--port=0", "--bind-address=0.0.0.0"]
    done = run("extender", "--config=config.yaml", PRINT, f"--url={url}", *vague)
    assert (done.exit_code, done.stderr) == (0, "")
    (extender,) = yaml.safe_load(done.stdout)["extenders"]
    assert extender["urlPrefix"] == url


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            [PRINT, "--port=0"],
            "--port 0 is nothing to ask at; say by --url how kube-scheduler reaches the extender",
            id="any port",
        ),
        pytest.param(
            [PRINT, "--bind-address=0.0.0.0"],
            "--bind-address 0.0.0.0 is nothing to ask at; say by --url how kube-scheduler reaches "
            "the extender",
            id="every address",
        ),
        pytest.param(
            ["--url=http://x:8001"],
            "--url is for --print-kube-scheduler-config",
            id="a URL beside a run",
        ),
        pytest.param(
            [PRINT, "--url-prefix=a b"],
            "'a b' is not a path; expected /scheduler",
            id="a prefix that is none",
        ),
    ],
)
def test_usage_is_told_for(run: Run, arguments: list[str], sentence: str) -> None:
    write_config("NodeUsage")
    done = run("extender", "--config=config.yaml", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{sentence}\n" in done.stderr


def test_a_url_that_is_none_is_told_in_one_sentence(run: Run) -> None:
    write_config("NodeUsage")
    done = run("extender", "--config=config.yaml", PRINT, "--url=http://x:70000/scheduler")
    assert (done.exit_code, done.stdout, done.stderr) == (
        1,
        "",
        "lowtide: the URL must be such as http://lowtide-extender:8001/scheduler, with a port from "
        "1 to 65535, and is http://x:70000/scheduler\n",
    )


@pytest.mark.timeout(30)  # it would run if it were not rejected
@pytest.mark.parametrize("mode", [PRINT, NOBODY], ids=["when printing", "at the start"])
def test_a_profile_with_nothing_to_ask_is_rejected(run: Run, mode: str) -> None:
    write_config()
    done = run("extender", "--config=config.yaml", "--port=8001", mode)
    assert (done.exit_code, done.stdout, done.stderr) == (
        1,
        "",
        "lowtide: profile asking: no plugin filters or scores nodes, so there is nothing to ask "
        "the "
        "extender; enable one, such as NetworkTraffic\n",
    )


def test_kube_schedulers_own_configuration_is_warned_of(run: Run) -> None:
    """Two lines on stderr, and the printed configuration is still one."""
    write_config(
        profiles=[{"schedulerName": "default-scheduler"}],
        extenders=[{"urlPrefix": "http://127.0.0.1:8001/scheduler", "filterVerb": "filter"}],
    )
    done = run("extender", "--config=config.yaml", PRINT)
    assert done.exit_code == 0
    told = [line.partition("] ")[2] for line in done.stderr.splitlines()]
    plugins, others = told
    assert plugins.startswith(
        "config.yaml:4: profiles[0]: 16 default plugins of kube-scheduler that filter or score run "
        "a second time here; write plugins: {multiPoint: "
    )
    assert others.startswith("config.yaml:5: extenders: are not asked here")
    assert list(yaml.safe_load(done.stdout)) == [
        "apiVersion",
        "kind",
        "clientConnection",
        "percentageOfNodesToScore",
        "profiles",
        "extenders",
    ]
