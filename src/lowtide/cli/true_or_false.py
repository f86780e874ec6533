"""The type of flags that are true or false: an empty word, as of a variable that is not set, is
neither."""

from typing import Any

import click


class TrueOrFalse(click.types.BoolParamType):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if value == "":
            self.fail("it is empty; expected true or false", param, ctx)
        return super().convert(value, param, ctx)
