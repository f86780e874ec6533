"""A duration as kube-scheduler's flags take it."""

from typing import Any

import click

from lowtide.config.durations import seconds_from_duration


class Seconds(click.ParamType[float]):
    """A Go duration."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return seconds_from_duration(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a duration; expected 15s or 1m30s", param, ctx)
