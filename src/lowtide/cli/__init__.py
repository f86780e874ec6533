"""The commands: argument parsing, and nothing else. `main` is the entry point `lowtide`."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from lowtide.cli.config import config
from lowtide.cli.decide import decide
from lowtide.cli.demo import demo
from lowtide.cli.doctor import doctor
from lowtide.cli.errors import told_in_one_sentence
from lowtide.cli.extender import extender
from lowtide.cli.scheduler import scheduler
from lowtide.cli.simulate import simulate
from lowtide.cli.version import version


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="lowtide", message="lowtide %(version)s")
def lowtide() -> None:
    """Places Kubernetes pods on nodes whose network is quiet."""


for command in (scheduler, extender, decide, simulate, config, doctor, demo, version):
    lowtide.add_command(command)


def main(plugins: Mapping[str, type[Any]] | None = None) -> None:
    """Runs the command line; `plugins` are an outsider's rules by name."""
    with told_in_one_sentence():
        sys.exit(lowtide.main(prog_name="lowtide", obj=dict(plugins or {}), standalone_mode=True))
