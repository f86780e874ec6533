"""What the options about serving come to, in a command of their own."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run

from lowtide.cli.serving_options import serving_options
from lowtide.server.certificate import TlsFiles
from lowtide.server.serving import Serving

PAIR = ["--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key"]
TLS = TlsFiles(certificate=Path("tls.crt"), private_key=Path("tls.key"))


def said(*arguments: str) -> Serving:
    heard: list[Serving] = []

    @click.command()
    @serving_options("--my-port", default_port=1234, port_help="Its port.")
    @click.option("--other", default="")
    def command(serving: Serving, other: str) -> None:
        heard.append(serving)

    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "")
    return heard[0]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param([], Serving(None, 1234), id="loopback and the command's port"),
        pytest.param(
            ["--bind-address=0.0.0.0", "--my-port=0", "--other=x"],
            Serving("0.0.0.0", 0),
            id="another address and port",
        ),
        pytest.param(
            ["--bind-address=127.0.0.1"], Serving("127.0.0.1", 1234), id="loopback, named"
        ),
        pytest.param(["--bind-address=[::1]"], Serving("::1", 1234), id="an address as in a url"),
        pytest.param(PAIR, Serving(None, 1234, TLS), id="HTTPS"),
        pytest.param(
            [*PAIR, "--client-ca-file=ca.crt", "--debug"],
            Serving(None, 1234, TLS, Path("ca.crt"), True),
            id="certificates of clients, and debug endpoints",
        ),
    ],
)
def test_options_say(arguments: list[str], want: Serving) -> None:
    assert said(*arguments) == want


@pytest.mark.parametrize("command", [["scheduler"], ["extender", "--config=missing.yaml"]])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["--tls-private-key-file=tls.key"],
            "--tls-cert-file and --tls-private-key-file go together",
            id="a key without its certificate",
        ),
        pytest.param(
            ["--client-ca-file=ca.crt"],
            "--client-ca-file is for HTTPS: give --tls-cert-file and --tls-private-key-file too",
            id="a client CA without TLS",
        ),
        pytest.param(
            ["--debug", "--bind-address=0.0.0.0"],
            "--debug is not for --bind-address 0.0.0.0",
            id="debug endpoints for everybody",
        ),
        pytest.param(
            ["--bind-address="],
            "--bind-address is empty; name one, such as 127.0.0.1, or 0.0.0.0 for all",
            id="no address",
        ),
    ],
)
def test_usage_is_told_for(
    run: Run, command: list[str], arguments: list[str], sentence: str
) -> None:
    result = run(*command, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
