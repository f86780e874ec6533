"""Settings of `lowtide extender` for a profile: the entry `Extender` in its pluginConfig.

The registry decodes it like plugins' args; the extender mode reads it."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from lowtide.config.types import Duration

ENTRY = "Extender"

_LONGEST_BUDGET_SECONDS = 30.0
_LONGEST_BOOKING_SECONDS = 600.0


class ExtenderSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    empty_result: Literal["failedNodes", "error"] = "failedNodes"
    """The answer if plugins reject every node: each node with its reason, or an error. To
    kube-scheduler an error is a failure of the extender, which it skips if it is `ignorable`."""
    names_budget_seconds: Duration = msgspec.field(default=0.05, name="namesBudget")
    """A request with node names that takes longer gets a neutral answer: all nodes, none
    preferred. Bounds: 1ms to 30s."""
    nodes_budget_seconds: Duration = msgspec.field(default=0.5, name="nodesBudget")
    """The same for a request with whole Nodes, and for `preempt`. Bounds: 1ms to 30s."""
    book_for_seconds: Duration = msgspec.field(default=10.0, name="bookFor")
    """How long a pod counts in the measurements of the node that was best for it, unless its
    binding is seen earlier. Bounds: 0s to 600s."""
    bind: bool = False
    """Serves the verb `bind` and prints `bindVerb` for kube-scheduler. Lowtide then binds pods and
    needs the permission to create pods/binding. One profile with `true` is enough."""
    log_answers: bool = False
    """Logs the verdict and score of the first 100 nodes; otherwise `-v 2` does."""

    @property
    def is_empty_an_error(self) -> bool:
        return self.empty_result == "error"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what type checks cannot find, as (field, text)."""
        for name, seconds in (
            ("namesBudget", self.names_budget_seconds),
            ("nodesBudget", self.nodes_budget_seconds),
        ):
            if not 0.001 <= seconds <= _LONGEST_BUDGET_SECONDS:
                yield (
                    name,
                    f"must be from 1ms to {_LONGEST_BUDGET_SECONDS:g}s, not {seconds:g}s",
                )
        if not 0 <= self.book_for_seconds <= _LONGEST_BOOKING_SECONDS:
            longest, given = _LONGEST_BOOKING_SECONDS, self.book_for_seconds
            yield "bookFor", f"must be from 0s to {longest:g}s, not {given:g}s"
