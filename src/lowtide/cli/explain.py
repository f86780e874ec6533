"""`lowtide explain NAMESPACE/POD`: why a pod went where it went, or why it waits."""

import asyncio
import os
import time
from pathlib import Path

import click
import msgspec
from rich.console import Console

from lowtide.app.explain import (
    explanation_by_address,
    explanation_from_file,
    explanation_through_api_server,
    pod_key,
)
from lowtide.cli.errors import reported_in_one_sentence
from lowtide.cli.explanation import Printed
from lowtide.kube.kubeconfig import load_access

DEFAULT_NAMESPACE = "default"
_WIDTH_WITHOUT_TERMINAL = 160


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Of the pod. [default: that of the kubeconfig's context; with --address or "
    f"--decisions-file {DEFAULT_NAMESPACE}]",
)
@click.option("--why-not", "node_name", metavar="NODE", help="Why it did not go to this node.")
@click.option(
    "--address",
    metavar="URL",
    help="Ask the process that serves there, such as https://127.0.0.1:10259.",
)
@click.option(
    "--decisions-file",
    type=click.Path(path_type=Path),
    help="Read what `lowtide scheduler --decisions-file` wrote instead of asking.",
)
@click.option(
    "--kubeconfig", help="Else ask Lowtide's pods through this cluster's API server, as this user."
)
@click.option(
    "--through", metavar="NAMESPACE/POD", help="Ask this pod. [default: those labelled lowtide]"
)
@click.option(
    "--port", type=int, help="Of that pod. [default: 10259 of a scheduler, 8001 of an extender]"
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def explain(
    pod: str,
    namespace: str | None,
    node_name: str | None,
    address: str | None,
    decisions_file: Path | None,
    kubeconfig: str | None,
    through: str | None,
    port: int | None,
    output: str,
) -> None:
    """Says why a pod went where it went, or why it waits.

    Of a pod that waits it says also what would make it fit. Asks the scheduler or extender that
    decided, or a shadow: on a local port with --address, else its pods through the API server's
    proxy, with your own permissions (get on pods/proxy). Or reads a file of decisions.
    """
    if address is not None and decisions_file is not None:
        raise click.UsageError("--address and --decisions-file exclude each other")
    with reported_in_one_sentence():
        if decisions_file is not None:
            key = pod_key(pod, namespace, DEFAULT_NAMESPACE)
            found = explanation_from_file(decisions_file, key, node_name)
        elif address is not None:
            key = pod_key(pod, namespace, DEFAULT_NAMESPACE)
            found = asyncio.run(explanation_by_address(address, key, node_name))
        else:
            access = load_access(
                kubeconfig=kubeconfig, master=None, environment=os.environ, home=Path.home()
            )
            key = pod_key(pod, namespace, access.namespace)
            found = asyncio.run(
                explanation_through_api_server(
                    access, key, node_name, through=through, port=port, wall_clock=time.time
                )
            )
        if output == "json":
            click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        else:
            console = Console()
            if not console.is_terminal:
                console = Console(width=_WIDTH_WITHOUT_TERMINAL)
            Printed(console).explanation(found)
