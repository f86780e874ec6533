"""Listener: what the advisor calls to report its work. The one in `advising` logs and counts."""

from typing import Protocol

from lowtide.cluster.nodes import Nodes
from lowtide.framework.decision import ScoreTable
from lowtide.framework.plugin import PluginError
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod
from lowtide.scheduler.actions import Decided


class Listener(Protocol):
    def plugin_failed(self, error: PluginError) -> None:
        """A plugin failed; the advice is made without it."""

    def wants_details(self, profile: Profile) -> bool:
        """Whether to call `filtered` and `scored`, which takes time."""

    def filtered(self, pod: Pod, profile: Profile, nodes: Nodes) -> None: ...

    def scored(self, profile: Profile, scores: ScoreTable, nodes: Nodes) -> None: ...

    def answered(self, decided: Decided, began_at: float) -> None:
        """An answer was handed out; `decided` has the best node, if any is left."""

    def pod_placed(self, uid: str, node_name: str) -> None:
        """A pod was bound, whether or not the advisor was asked about it."""
