"""Who hears of what the advisor does: `advising` hands one in, which tells and counts."""

from typing import Protocol

from lowtide.cluster.nodes import Nodes
from lowtide.framework.decision import ScoreTable
from lowtide.framework.plugin import PluginError
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod
from lowtide.scheduler.actions import Decided


class Listener(Protocol):
    """Hears what is to be told and counted."""

    def plugin_failed(self, error: PluginError) -> None:
        """What the plugin would have said does not count."""

    def tells(self, profile: Profile) -> bool:
        """Whether to hand over verdicts and scores, which costs something."""

    def filtered(self, pod: Pod, profile: Profile, nodes: Nodes) -> None: ...

    def scored(self, profile: Profile, scores: ScoreTable, nodes: Nodes) -> None: ...

    def answered(self, decided: Decided, began_at: float) -> None:
        """An answer that was handed out; where nodes are left, the best one is `decided`."""

    def went_to(self, uid: str, node_name: str) -> None:
        """Where a pod was put, whoever was asked about it."""
