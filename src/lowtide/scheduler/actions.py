"""The machine's output: actions for its driver to perform. Data, no I/O."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.columns import IntArray
from lowtide.framework.asking import NOTHING_SPENT, Spent
from lowtide.framework.decision import Decision
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod
from lowtide.scheduler.extending import Question


class AnsweredPriorities(msgspec.Struct, frozen=True):
    """The priorities, 0 to 10, that another scheduler was answered: those of the nodes that the
    decision keeps, the highest of all nodes, and how many nodes have the highest."""

    of_kept: IntArray
    highest: int
    highest_count: int

    @classmethod
    def from_answered(cls, answered: IntArray, of_kept: IntArray) -> Self:
        highest = int(answered.max())
        return cls(of_kept, highest, int(np.count_nonzero(answered == highest)))

    def first(self, count: int) -> Self:
        """For a decision that keeps only `count` of the best nodes."""
        return replace(self, of_kept=self.of_kept[:count].copy())


class Decided(msgspec.Struct, frozen=True):
    """A pod had its turn: to report. `asked` is the verb if another scheduler asked; the node is
    then only advice. `neutral` is why the answer left the plugins out."""

    decision: Decision
    attempts: int
    first_seen_at: float
    spent: Spent = NOTHING_SPENT  # by the plugins that had to be asked
    asked: str = ""
    neutral: str = ""
    priorities: AnsweredPriorities | None = None


class Bind(msgspec.Struct, frozen=True):
    pod: Pod
    node_name: str
    profile: Profile
    memories: Mapping[str, Any] = {}  # by plugin: what `reserve` returned to remember


class WriteCondition(msgspec.Struct, frozen=True):
    """Set PodScheduled=False on the pod, and its nomination."""

    pod: Pod
    reason: str
    message: str
    nominated_node_name: str | None = None  # "": remove it; None: leave it

    @property
    def is_news(self) -> bool:
        """Whether the pod's status does not show all of this yet."""
        return self.nominated_node_name is not None or not any(
            each.type == "PodScheduled"
            and each.status == "False"
            and each.reason == self.reason
            and each.message == self.message
            for each in self.pod.status.conditions
        )


class WriteKubeEvent(msgspec.Struct, frozen=True):
    pod: Pod
    type: str
    reason: str
    action: str
    note: str
    scheduler_name: str
    related: Pod | None = None


class Evict(msgspec.Struct, frozen=True):
    """Delete the victims, so that `pod` fits on the node, and remove the nominations of the pods
    in `nominated`. `EvictionEnded` reports the end."""

    pod: Pod
    node_name: str
    victims: tuple[Pod, ...]
    nominated: tuple[Pod, ...] = ()


class LookUpBinding(msgspec.Struct, frozen=True):
    """Read the pod from the API server: its binding succeeded, but the watch does not confirm it.
    `BindingLookedUp` brings the answer."""

    pod: Pod
    node_name: str


class AskExtenders(msgspec.Struct, frozen=True):
    """Ask this. The cycle goes on when `ExtendersAnswered` brings the answer."""

    question: Question


class AttemptFailed(msgspec.Struct, frozen=True):
    """An error that is not the pod's fault; the pod is tried again."""

    pod: Pod
    error: str


class PluginFailed(msgspec.Struct, frozen=True):
    """A plugin raised, but failed no attempt, such as in `may_help`: to log and to count. At most
    one per plugin and turn."""

    plugin_name: str
    error: str


Action = (
    Decided
    | Bind
    | LookUpBinding
    | Evict
    | AskExtenders
    | WriteCondition
    | WriteKubeEvent
    | AttemptFailed
    | PluginFailed
)


def failure_event(pod: Pod, note: str) -> WriteKubeEvent:
    name = pod.spec.scheduler_name
    return WriteKubeEvent(pod, "Warning", "FailedScheduling", "Scheduling", note, name)
