"""What the plugins would have decided for pods that another scheduler places. Pure: events in,
comparisons out, and no actions. `app/shadow` drives it."""

import enum
from collections.abc import Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from lowtide.cluster.state import ClusterState
from lowtide.framework.asking import NOTHING_SPENT, Asking, Spent
from lowtide.framework.decision import Decision, NodeRejection, ScoreTable
from lowtide.framework.plugin import PluginError, PodRejection
from lowtide.framework.profile import Profile, plugins_by_kind
from lowtide.framework.verdict_cache import VerdictCache
from lowtide.objects.pod import Pod
from lowtide.objects.quantity import QuantityError
from lowtide.scheduler.decide import decide, decided_now
from lowtide.scheduler.events import Event
from lowtide.scheduler.object_events import ObjectEvents
from lowtide.scheduler.unbound_pods import UnboundPods


class Agreement(enum.Enum):
    SAME = "same"
    AS_GOOD = "as good"  # another node, with the same total score
    DIFFERENT = "different"
    REJECTED = "rejected there"  # a plugin rejects the node that the pod went to
    NOWHERE = "nowhere"  # the pod fits no node
    FAILED = "failed"  # a plugin failed, or the pod cannot be read


class Shadowed(msgspec.Struct, frozen=True):
    """A pod that another scheduler placed on `node_name`, and how that compares with the plugins'
    choice. `total` is the score of that node, `best_total` the highest of all nodes."""

    pod: Pod
    node_name: str
    agreement: Agreement
    decision: Decision | None = None
    total: int | None = None
    best_total: int | None = None
    rejection: NodeRejection | None = None
    error: str = ""
    because: str = ""  # the plugin that prefers the chosen node most
    waited_seconds: float = 0.0
    spent: Spent = NOTHING_SPENT  # by the plugins that had to be asked

    @property
    def would_be_on(self) -> str:
        """The plugins' choice; the node it is on if they have none or one that is as good."""
        chosen = None if self.decision is None else self.decision.node_name
        return self.node_name if chosen is None or self.agreement is Agreement.AS_GOOD else chosen


class Shadow:
    """With one profile, it judges every pod, whatever its schedulerName. With several, it judges
    each pod by the profile of that name, or else by the first."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.state = ClusterState()
        self.profiles = profiles
        self._verdicts = {
            name: VerdictCache(profile, self.state) for name, profile in profiles.items()
        }
        self._objects = ObjectEvents(self.state, profiles.values(), self)
        self.queue = UnboundPods()
        self._turns = 0
        self._shadowed: Shadowed | None = None  # the result of the current event

    @property
    def plugins_by_kind(self) -> dict[type, tuple[str, ...]]:
        """The object types to watch besides nodes and pods, and the plugins that need them."""
        return plugins_by_kind(self.profiles.values())

    @property
    def is_synced(self) -> bool:
        return not self._objects.unlisted

    @property
    def binding_count(self) -> None:
        """None: another scheduler binds, and how many bindings it has under way is unknown."""

    def decided_now(self, pod: Pod, now: float) -> Decision:
        """The decision that a known pod would get now, for explanations."""
        waited_seconds = self.queue.waited_seconds(pod.uid, now)
        return decided_now(
            _without_nomination(pod),
            self._verdicts_for(pod),
            turn=self._turns,
            waited_seconds=waited_seconds,
        )

    def rejection_of(self, pod: Pod, node_name: str) -> NodeRejection | None:
        return self._verdicts_for(pod).rejection_on(pod, node_name)

    def gate_of(self, pod: Pod) -> tuple[str, PodRejection] | None:
        return self._verdicts_for(pod).profile.gate(pod)

    def step(self, event: Event, now: float) -> Shadowed | None:
        self._shadowed = None
        self._objects.step(event, now)
        return self._shadowed

    def pod_pending(self, pod: Pod, now: float) -> None:
        self.queue.keep(pod, now)

    def pod_bound(self, pod: Pod, now: float) -> None:
        before = self.queue.drop(pod.uid)
        if before is not None and self.is_synced and self.state.placed(pod.uid) is None:
            waited_seconds = now - before.first_seen_at
            self._shadowed = self._compared(before.pod, pod.spec.node_name, waited_seconds)
        self.state.place(pod)

    def pod_gone(self, pod: Pod, now: float) -> None:
        self.queue.drop(pod.uid)
        self.state.remove_pod(pod.uid)

    def _verdicts_for(self, pod: Pod) -> VerdictCache:
        first = next(iter(self._verdicts.values()))
        return self._verdicts.get(pod.spec.scheduler_name, first)

    def _compared(self, pod: Pod, node_name: str, waited_seconds: float) -> Shadowed:
        verdicts, pod = self._verdicts_for(pod), _without_nomination(pod)
        self._turns += 1
        asking = Asking(verdicts.profile.clock)
        try:
            decision = decide(
                pod, verdicts, turn=self._turns, waited_seconds=waited_seconds, asking=asking
            )
            if decision.node_name is None:
                found = Shadowed(pod, node_name, Agreement.NOWHERE, decision)
            else:
                found = self._judged(pod, node_name, decision, verdicts, asking)
        except (PluginError, QuantityError) as error:
            found = Shadowed(pod, node_name, Agreement.FAILED, error=str(error))
        return replace(found, waited_seconds=waited_seconds, spent=asking.spent)

    def _judged(
        self,
        pod: Pod,
        node_name: str,
        decision: Decision,
        verdicts: VerdictCache,
        asking: Asking,
    ) -> Shadowed:
        if decision.node_name == node_name:
            return Shadowed(pod, node_name, Agreement.SAME, decision)
        row, verdict = self.state.row_of(node_name), verdicts.verdict_on(pod, asking)
        if row is None:
            return Shadowed(pod, node_name, Agreement.DIFFERENT, decision)
        rejection = verdict.rejection_at(row)
        if rejection is not None:  # does not count if our choice needed one to give way
            is_rejected = decision.gave_way is None
            agreement = Agreement.REJECTED if is_rejected else Agreement.DIFFERENT
            return Shadowed(pod, node_name, agreement, decision, rejection=rejection)
        ranked = verdict.rank(asking)
        total, best_total = int(ranked[row]), int(ranked.max())
        if total == best_total:
            return Shadowed(pod, node_name, Agreement.AS_GOOD, decision, total, best_total)
        chosen, because = self.state.row_of(decision.node_name or ""), ""
        if chosen is not None:
            because = _plugin_in_favour(verdict.scores_of(np.array([chosen, row]), ranked))
        return Shadowed(
            pod, node_name, Agreement.DIFFERENT, decision, total, best_total, because=because
        )


def _without_nomination(pod: Pod) -> Pod:
    """The nomination is the other scheduler's; our plugins do not follow it."""
    return replace(pod, status=replace(pod.status, nominated_node_name=""))


def _plugin_in_favour(scores: ScoreTable) -> str:
    """The plugin that prefers the first of two nodes most; "" if none prefers it."""
    gains = np.array(scores.weights) * (scores.normalized[:, 0] - scores.normalized[:, 1])
    if not len(gains) or gains.max() <= 0:
        return ""
    return scores.plugins[int(gains.argmax())]
