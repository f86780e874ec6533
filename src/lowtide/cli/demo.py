"""`lowtide demo`."""

import click


@click.command()
def demo() -> None:
    """Shows the main job on one machine, with an embedded cluster."""
