"""Who decides, or says what it would: what `shown` asks of machine, advisor and shadow."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from lowtide.cluster.state import ClusterState
from lowtide.framework.decision import Decision, NodeRejection
from lowtide.framework.plugin import PodRejection
from lowtide.framework.profile import Profile
from lowtide.objects.pod import Pod


class WaitingPod(Protocol):
    @property
    def pod(self) -> Pod: ...

    @property
    def is_rejected(self) -> bool:
        """Whether no node was found for it when it was tried last."""


class WaitingPods(Protocol):
    def __iter__(self) -> Iterator[WaitingPod]: ...

    def lengths(self) -> Mapping[str, int]: ...


class Decider(Protocol):
    """Nothing is changed by asking."""

    @property
    def state(self) -> ClusterState: ...

    @property
    def profiles(self) -> Mapping[str, Profile]: ...

    @property
    def queue(self) -> WaitingPods: ...

    @property
    def binding_count(self) -> int | None:
        """None where others bind."""

    def decided_now(self, pod: Pod, now: float) -> Decision: ...

    def rejection_of(self, pod: Pod, node_name: str) -> NodeRejection | None: ...

    def gate_of(self, pod: Pod) -> tuple[str, PodRejection] | None: ...
