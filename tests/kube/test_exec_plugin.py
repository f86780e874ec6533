"""What an exec plugin is told and what becomes of what it prints; the plugins are real programs."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lowtide.kube.errors import CredentialsError
from lowtide.kube.exec_plugin import ExecCredential, run_exec_plugin
from lowtide.kube.kubeconfig import Cluster, ExecPlugin, Pem

V1 = "client.authentication.k8s.io/v1"
CLUSTER = Cluster(
    "https://x:1",
    certificate_authority=Pem(data=b"ca"),
    is_verified=False,
    tls_server_name="name",
    proxy_url="http://proxy",
    exec_config={"audience": "a"},
)


def printing(program: str, **changes: Any) -> ExecPlugin:
    return ExecPlugin(sys.executable, ("-S", "-E", "-c", program), **changes)


def answering(status: object, api_version: str = V1) -> ExecPlugin:
    return printing(f"print({json.dumps({'apiVersion': api_version, 'status': status})!r})")


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"token": "t"}, ExecCredential("t", None, None, None), id="takes a token"),
        pytest.param(
            {"clientCertificateData": "C", "clientKeyData": "K"},
            ExecCredential(None, b"C", b"K", None),
            id="takes a client certificate",
        ),
        pytest.param(
            {"token": "t", "expirationTimestamp": "2027-01-15T08:00:00Z"},
            ExecCredential("t", None, None, 1_800_000_000.0),
            id="knows when it expires",
        ),
        pytest.param(
            {"token": "t", "expirationTimestamp": "2027-01-15T09:00:00+01:00"},
            ExecCredential("t", None, None, 1_800_000_000.0),
            id="reads other time zones",
        ),
    ],
)
async def test_answers(status: object, want: ExecCredential) -> None:
    assert await run_exec_plugin(answering(status), CLUSTER, {}) == want


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(printing("print('hello')"), "printed no ExecCredential: ", id="is no JSON"),
        pytest.param(
            printing('import os; os.write(1, b\'{"kind":"\\xff","apiVersion":"\\xff"}\')'),
            "printed no ExecCredential: ",
            id="is no UTF-8",
        ),
        pytest.param(
            answering({}), "printed neither a token nor a client certificate", id="holds nothing"
        ),
        pytest.param(
            answering({"clientCertificateData": "C"}),
            "printed neither a token nor a client certificate with its key",
            id="holds half a pair",
        ),
        pytest.param(
            answering({"token": "t"}, "client.authentication.k8s.io/v1beta1"),
            f"answered with apiVersion client.authentication.k8s.io/v1beta1; "
            f"the kubeconfig asks for {V1}",
            id="is of another version",
        ),
        pytest.param(
            answering({"token": "two\nlines"}),
            "printed a token with line breaks, spaces or other characters that a header cannot "
            "hold; it must be one word",
            id="has a line break in its token",
        ),
        pytest.param(
            printing("import sys; sys.exit('log in first')"),
            "ended with code 1: log in first",
            id="is a failure",
        ),
        pytest.param(
            ExecPlugin("no-such-plugin", install_hint="Install it from the shop."),
            "cannot be started: No such file or directory; Install it from the shop.",
            id="cannot be had because the program is missing",
        ),
    ],
)
async def test_a_credential_that(plugin: ExecPlugin, want: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        await run_exec_plugin(plugin, CLUSTER, dict(os.environ))
    assert str(caught.value).startswith(f"The exec plugin {plugin.command} {want}")


@pytest.mark.parametrize(
    ("gets_cluster", "want_spec"),
    [
        pytest.param(False, {"interactive": False}, id="is told nothing it did not ask for"),
        pytest.param(
            True,
            {
                "interactive": False,
                "cluster": {
                    "server": "https://x:1",
                    "tls-server-name": "name",
                    "insecure-skip-tls-verify": True,
                    "certificate-authority-data": "Y2E=",
                    "proxy-url": "http://proxy",
                    "config": {"audience": "a"},
                },
            },
            id="is told about the cluster when it asks",
        ),
    ],
)
async def test_the_plugin(tmp_path: Path, gets_cluster: bool, want_spec: object) -> None:
    seen = tmp_path / "seen"
    program = (
        "import json, os\n"
        f"open({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))\n"
        f"print({json.dumps({'apiVersion': V1, 'status': {'token': 't'}})!r})"
    )
    plugin = printing(program, environment={"REGION": "north"}, gets_cluster=gets_cluster)
    await run_exec_plugin(plugin, CLUSTER, {"HOME": "/h", "REGION": "south"})
    environment = json.loads(seen.read_text())
    info = json.loads(environment.pop("KUBERNETES_EXEC_INFO"))
    assert (environment["HOME"], environment["REGION"]) == ("/h", "north")
    assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": want_spec}


TALKING = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "1000"])
open({file!r}, "w").write(str(child.pid))
while True:
    os.write({stream}, b"x" * 65536)
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("stream", [1, 2], ids=["output", "complaints"])
async def test_a_plugin_that_prints_without_an_end_is_killed_with_all_it_started(
    tmp_path: Path, stream: int
) -> None:
    file = tmp_path / "child"
    plugin = printing(TALKING.format(file=str(file), stream=stream))
    async with asyncio.timeout(30):
        with pytest.raises(CredentialsError) as caught:
            await run_exec_plugin(plugin, CLUSTER, dict(os.environ))
        while is_running(int(file.read_text())):
            await asyncio.sleep(0)
    assert str(caught.value) == (
        f"The exec plugin {plugin.command} printed more than 1 MiB, the limit, and was killed; "
        "it should print one ExecCredential"
    )


async def test_a_plugin_is_killed_with_all_it_started_when_nobody_waits_any_more(
    tmp_path: Path,
) -> None:
    file = tmp_path / "child"
    plugin = printing(TALKING.format(file=str(file), stream=1).replace("while True", "while False"))
    plugin = replace(plugin, args=(*plugin.args[:-1], plugin.args[-1] + "\nchild.wait()"))
    async with asyncio.timeout(30):
        running = asyncio.create_task(run_exec_plugin(plugin, CLUSTER, dict(os.environ)))
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while is_running(int(file.read_text())):
            await asyncio.sleep(0)


async def test_long_complaints_of_a_plugin_that_fails_are_cut() -> None:
    plugin = printing("import sys; sys.exit('x' * 100_000)")
    with pytest.raises(CredentialsError) as caught:
        await run_exec_plugin(plugin, CLUSTER, dict(os.environ))
    assert len(str(caught.value)) < 1000
