"""`lowtide version`."""

from importlib.metadata import version as version_of

import click


@click.command()
def version() -> None:
    """Prints the version."""
    click.echo(f"lowtide {version_of('lowtide')}")
