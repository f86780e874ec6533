"""Plugins that write log lines of their own about nodes inherit from these classes.

scheduler/log_lines.py asks them; few plugins need it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from lowtide.framework.decision import PluginScore
from lowtide.framework.plugin import Nodes, Pod


class LogsScores(ABC):
    name: str
    logs_readings: bool = False  # whether to log the scores of each new reading too, briefly

    @abstractmethod
    def score_log_lines(
        self, scores: Mapping[str, PluginScore], nodes: Nodes, /, *, brief: bool = False
    ) -> Iterable[str]:
        """Whole lines about the scores of these nodes, by name; `nodes` as they were scored."""


class LogsVerdicts(ABC):
    @abstractmethod
    def filter_log_lines(self, pod: Pod, nodes: Nodes, /) -> Iterable[str]:
        """Whole lines about what the filter answers for each node."""
