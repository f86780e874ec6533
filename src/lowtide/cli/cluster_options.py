"""Options about the API server for the modes that run on a cluster, as kube-scheduler has them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lowtide.config.types import KubeSchedulerConfiguration
from lowtide.kube.kubeconfig import Access, load_access

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    options = [
        click.option(
            "--kubeconfig",
            help="How to reach the API server; else the pod's own account, $KUBECONFIG, "
            "~/.kube/config.",
        ),
        click.option("--master", help="Address of the API server; overrides the kubeconfig's."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def access_for(
    config: KubeSchedulerConfiguration, *, kubeconfig: str | None, master: str | None
) -> Access:
    """What the flags say wins over what the configuration says."""
    return load_access(
        kubeconfig=kubeconfig or config.client_connection.kubeconfig or None,
        master=master,
        environment=os.environ,
        home=_home(),
    )


def _home() -> Path:
    """The root where the user has none, as in an image without accounts."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")
