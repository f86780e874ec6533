"""A placement under way: a pod that is assumed on a node until its binding has ended, and what the
rules that reserve and permit say of it. Used by the machine."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import UNTIMED, Asking, ask
from lowtide.framework.decision import Decision
from lowtide.framework.plugin import PluginError, PodRejection, Reject, Reserved, Wait
from lowtide.framework.profile import Profile
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.events import PermitAnswered
from lowtide.scheduler.queue import QueuedPod


class Placement(msgspec.Struct):
    queued: QueuedPod
    node_name: str
    profile: Profile
    asking: Asking = UNTIMED  # of the turn in which it began
    is_doubtful: bool = False  # whether others have changed the node since it was chosen
    waits: dict[str, float] = {}  # seconds, by the rule that wants it
    answers: list[PermitAnswered] = []  # for pods that wait already
    memories: dict[str, Any] = {}  # by plugin: what it wants to be handed again

    def refusal(self, state: ClusterState) -> tuple[str, str] | None:
        """Asks every rule that reserves or permits; the first that refuses, and why. What rules
        reserve is assumed in the state."""
        return self._reserve(state) or self._permit(state)

    def unreserve(self) -> list[str]:
        """Takes back what rules reserved, in reverse order; returns what went wrong on the way."""
        errors = []
        for rule in reversed(self.profile.at("reserve")):
            try:
                if hasattr(rule, "unreserve"):
                    memory = handed(self.memories, rule)
                    ask(rule, "unreserve", self.queued.pod, self.node_name, **memory)
            except (PluginError, QuantityError) as error:
                errors.append(str(error))
        return errors

    def _reserve(self, state: ClusterState) -> tuple[str, str] | None:
        pod = self.queued.pod
        for rule in self.profile.at("reserve"):
            answer, _ = self.asking.observed(
                state, rule, "reserve", pod, self.node_name, state.nodes()
            )
            if isinstance(answer, PodRejection):
                return rule.name, answer.reason
            if isinstance(answer, Reserved):
                self.memories[rule.name] = answer.memory
                if objects := tuple(answer.objects):
                    state.known_objects.assume(pod.uid, objects)
            elif answer is not None:
                raise PluginError(
                    f"{rule.name}.reserve answers with {answer!r}; "
                    "it must be Reserved(objects=...), PodRejection or None",
                    rule_name=rule.name,
                )
        return None

    def _permit(self, state: ClusterState) -> tuple[str, str] | None:
        pod = self.queued.pod
        for rule in self.profile.at("permit"):
            memory = handed(self.memories, rule)
            nodes = state.nodes()
            answer, _ = self.asking.observed(
                state, rule, "permit", pod, self.node_name, nodes, **memory
            )
            reason = answer.reason if isinstance(answer, Reject) else None
            if isinstance(answer, Wait):
                self.waits[rule.name] = answer.seconds
            else:
                also = sorted(getattr(answer, "also", ()))
                self.answers.extend(PermitAnswered(uid, rule.name, reason) for uid in also)
            if reason is not None:
                return rule.name, reason
        return None


def handed(memories: Mapping[str, Any], plugin: Any) -> dict[str, Any]:
    """What this plugin said to remember about the pod, as the keyword that it is handed as."""
    memory = memories.get(plugin.name)
    return {} if memory is None else {"memory": memory}


def refused_by(rule_name: str, reason: str, decision: Decision) -> Decision:
    """The chosen node was refused after all; kube-scheduler then speaks of that node only."""
    return Decision(
        pod=decision.pod,
        scheduler_name=decision.scheduler_name,
        node_name=None,
        node_count=1,
        feasible_count=0,
        rejected_by=frozenset([rule_name]),
        reason_counts={reason: 1},
    )
