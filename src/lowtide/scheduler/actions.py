"""What comes out of the machine: what its driver has to do. Data, no I/O."""

from dataclasses import dataclass

from lowtide.framework.decision import Decision
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Decided:
    """A pod had its turn; nothing to do but to tell."""

    decision: Decision
    attempts: int
    first_seen_at: float


@dataclass(frozen=True, slots=True)
class Bind:
    pod: Pod
    node_name: str
    profile: Profile


@dataclass(frozen=True, slots=True)
class WriteCondition:
    """PodScheduled=False on the pod."""

    pod: Pod
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WriteKubeEvent:
    pod: Pod
    type: str
    reason: str
    action: str
    note: str
    scheduler_name: str


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """Something went wrong that is not the pod's fault; it is tried again."""

    pod: Pod
    error: str


Action = Decided | Bind | WriteCondition | WriteKubeEvent | AttemptFailed
