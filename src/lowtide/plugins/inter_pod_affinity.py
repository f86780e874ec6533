"""InterPodAffinity: places a pod near some pods and away from others, by its own terms and by those
of the pods already on nodes. Required terms reject nodes; preferred terms change scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np

from lowtide.cluster.affinity_terms import AffinityTerm, PodTerms, Purpose, terms_of
from lowtide.cluster.columns import Rows
from lowtide.cluster.pod_selection import PodSelection
from lowtide.framework.plugin import (
    MAX_SCORE,
    NODE,
    NODES,
    OBJECTS,
    OTHERS,
    PODS,
    BoolArray,
    Change,
    FloatArray,
    IntArray,
    Nodes,
    Pod,
    PodRejection,
    Rejection,
)
from lowtide.objects.kinds import Namespace
from lowtide.objects.matching import matches_selector
from lowtide.objects.node import Node
from lowtide.objects.pod import PodAffinityTerm

_NOT_NEAR = "node(s) didn't match pod affinity rules"
_TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
_NOT_WANTED_THERE = "node(s) didn't satisfy existing pods anti-affinity rules"

# Floats are exact up to here, and a thousand such sums fit into 64 bits.
_LARGEST_SUM = 2.0**53

# By topology key: the number of pods on each row of the whole table.
_Reach = dict[str, IntArray]


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    hard_pod_affinity_weight: int = 1
    """Weight in the score of the required affinity of pods that already run. Bounds: 0 to 100."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Ignore preferred terms of running pods when the incoming pod has none."""

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_SCORE:
            yield "hardPodAffinityWeight", f"Invalid value: {weight}: not in valid range [0, 100]"


class InterPodAffinity:
    name = "InterPodAffinity"
    retry_on = NODE | PODS | NODES | OTHERS | OBJECTS
    kinds = (Namespace,)
    args = InterPodAffinityArgs

    def __init__(self, args: InterPodAffinityArgs) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_preferences_of_others = args.ignore_preferred_terms_of_existing_pods

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        """Reject a pod with invalid terms."""
        problems = terms_of(pod).problems
        if not problems:
            return None
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        return PodRejection(f"parsing pod: {text}")

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Rejection]:
        own = terms_of(pod)
        rejecting = _rejecting(pod, nodes.everything)
        if not own.affinity and not own.anti_affinity and not rejecting:
            # This holds with overlays too: as in kube-scheduler, the terms of nominated pods alone
            # do not count.
            return
        is_rejected = np.zeros(len(nodes), np.bool_)
        if own.affinity:
            is_rejected = _is_not_near(pod, own, nodes)
            yield Rejection(is_rejected, _NOT_NEAR)
        if own.anti_affinity:
            is_too_near = _is_too_near(own, nodes) & ~is_rejected
            yield Rejection(is_too_near, _TOO_NEAR, eviction_helps=True)
            is_rejected = is_rejected | is_too_near
        is_unwanted = _is_unwanted(pod, rejecting, nodes) & ~is_rejected
        yield Rejection(is_unwanted, _NOT_WANTED_THERE, eviction_helps=True)

    def may_help(self, pod: Pod, change: Change) -> bool:
        match change.thing:
            case Node():
                return _may_node_help(pod, change)
            case Namespace(metadata=meta):
                # Terms of pods on nodes may select by the labels of the pod's own namespace.
                terms = (*_required_near(pod), *_required_away(pod))
                return meta.name == pod.namespace or any(t.namespace_selector for t in terms)
        return _may_pod_help(pod, change)

    def score(self, pod: Pod, nodes: Nodes) -> IntArray | None:
        own = terms_of(pod)
        if self._ignores_preferences_of_others and not own.preferences:
            return None
        worth: dict[str, FloatArray] = {}  # floats cannot overflow, and are exact up to 2**53
        for pods, weight, key in self._weighed(pod, own, nodes.everything):
            if _are_in_domain(pods, key, nodes.everything):
                of_rows = np.multiply(pods, float(weight), dtype=np.float64)
                worth[key] = worth[key] + of_rows if key in worth else of_rows
        if not worth:
            return None
        total = np.zeros(len(nodes), np.int64)
        for key, of_rows in worth.items():
            total += _in_domain(of_rows, key, nodes)
        return total

    def normalize(self, pod: Pod, nodes: Nodes, raw: IntArray) -> IntArray:
        """The lowest gets 0, the highest 100; if all are equal, all get 0."""
        counted = raw[nodes.feasible]
        lowest, highest = int(counted.min()), int(counted.max())
        if lowest == highest:
            return np.zeros(len(raw), np.int64)
        share = (raw - lowest) / float(highest - lowest)
        share *= MAX_SCORE
        return share.astype(np.int64)

    def _weighed(
        self, pod: Pod, own: PodTerms, whole: Nodes
    ) -> Iterator[tuple[IntArray, int, str]]:
        """For each term that scores: the matching pods by row, the weight of one pod, and the
        topology key."""
        for preference in own.preferences:
            selection = _resolved(preference.term, whole)
            if selection is not None:
                yield (
                    whole.pods_matching(selection),
                    preference.weight,
                    preference.term.topology_key,
                )
        for carried in whole.terms_about(pod):
            weight = self._hard_weight if carried.purpose is Purpose.ATTRACTS else carried.weight
            if carried.purpose is Purpose.REJECTS or (
                carried.purpose is Purpose.ATTRACTS and not weight
            ):
                continue
            if _is_about(carried.term, pod, whole):
                yield whole.pods_carrying(carried), weight, carried.term.topology_key


def _is_not_near(pod: Pod, own: PodTerms, nodes: Nodes) -> BoolArray:
    """The nodes that lack a topology key, or have no pod in their domain that matches all terms.

    The first pod of a group whose terms match itself may go to any node with the keys."""
    keys = {term.topology_key for term in own.affinity}
    lacks_key = np.zeros(len(nodes), np.bool_)
    for key in keys:
        lacks_key |= nodes.label_numbers(key)[0] < 0
    selection = _all_at_once(own.affinity, nodes)
    if selection is None:
        return np.ones(len(nodes), np.bool_)
    pods = nodes.everything.pods_matching(selection)
    gained = nodes.hypothetical_matching(selection)
    gained = np.zeros(len(nodes), np.int64) if gained is None else gained
    lacks_pods = np.zeros(len(nodes), np.bool_)
    everywhere = gained * len(keys)
    for key in keys:
        lacks_pods |= _in_domain(pods, key, nodes) + gained <= 0
        everywhere += _sum_in_domains(pods, key, nodes.everything)
    if selection.matches(pod):
        lacks_pods &= everywhere != 0
    return lacks_key | lacks_pods


def _is_too_near(own: PodTerms, nodes: Nodes) -> BoolArray:
    """The nodes with a pod in their domain that the incoming pod's anti-affinity matches."""
    is_too_near = np.zeros(len(nodes), np.bool_)
    for key in {term.topology_key for term in own.anti_affinity}:
        pods = np.zeros(len(nodes), np.int64)
        for term in own.anti_affinity:
            selection = _resolved(term, nodes) if term.topology_key == key else None
            if selection is not None:
                pods += _in_domain(nodes.everything.pods_matching(selection), key, nodes)
                gained = nodes.hypothetical_matching(selection)
                pods += 0 if gained is None else gained
        is_too_near |= (pods > 0) & (nodes.label_numbers(key)[0] >= 0)
    return is_too_near


def _rejecting(pod: Pod, whole: Nodes) -> _Reach:
    """The pods whose anti-affinity matches this pod, counted once per term, by topology key."""
    found: _Reach = {}
    for carried in whole.terms_about(pod):
        if carried.purpose is Purpose.REJECTS and _is_about(carried.term, pod, whole):
            key, pods = carried.term.topology_key, whole.pods_carrying(carried)
            if _are_in_domain(pods, key, whole):
                found[key] = found.get(key, 0) + pods
    return found


def _is_unwanted(pod: Pod, rejecting: Mapping[str, IntArray], nodes: Nodes) -> BoolArray:
    """The nodes with such pods in their domain, including hypothetical ones."""
    by_key = {key: _in_domain(pods, key, nodes) for key, pods in rejecting.items()}
    for position, other, times in nodes.hypothetical_pods():
        for term in terms_of(other).anti_affinity:
            if _is_about(term, pod, nodes):
                key = term.topology_key
                pods = by_key.setdefault(key, np.zeros(len(nodes), np.int64))
                pods[position] += times
    is_unwanted = np.zeros(len(nodes), np.bool_)
    for key, pods in by_key.items():
        is_unwanted |= (pods > 0) & (nodes.label_numbers(key)[0] >= 0)
    return is_unwanted


# may_help. The terms are read without resolving namespaces: it is called often, and may be wrong
# by answering True.


def _may_node_help(pod: Pod, change: Change) -> bool:
    """True if a node went with its pods, or changed its labels or taints: terms of pods on nodes
    may use any label. A new node must have a key that the pod's required affinity uses, if any."""
    if change.before is None:
        keys = {term.topology_key for term in _required_near(pod)}
        return not keys or not keys.isdisjoint(change.after.labels)
    if change.after is None:
        return True
    return change.is_relabelled


def _may_pod_help(pod: Pod, change: Change) -> bool:
    """Whether a pod came that this one must be near, or one went that was in its way."""
    near, away = _required_near(pod), _required_away(pod)

    def is_wanted(other: Pod) -> bool:
        return bool(near) and all(_may_mean(term, pod, other) for term in near)

    # The first pod of a group may go anywhere, and this one may be the first again.
    if change.is_new(is_wanted) or (change.is_over(is_wanted) and is_wanted(pod)):
        return True
    if change.before is None:
        return False
    stops = (change.is_over(partial(_may_mean, term, pod)) for term in away)
    return any(stops) or change.is_over(lambda other: _may_reject(other, pod))


def _may_reject(other: Pod, pod: Pod) -> bool:
    return any(_may_mean(term, other, pod) for term in _required_away(other))


def _may_mean(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Whether the owner's term matches the other pod. A namespace selector counts as a match."""
    return (
        term.namespace_selector is not None
        or other.namespace in (term.namespaces or (owner.namespace,))
    ) and matches_selector(term.label_selector, other.labels)


def _required_near(pod: Pod) -> Sequence[PodAffinityTerm]:
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def _required_away(pod: Pod) -> Sequence[PodAffinityTerm]:
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


# Which pods match.


def _all_at_once(terms: Sequence[AffinityTerm], nodes: Nodes) -> PodSelection | None:
    """The pods that match every term; None if no pod can."""
    selections = [_resolved(term, nodes) for term in terms]
    known = [each for each in selections if each is not None]
    if len(known) < len(selections):
        return None
    listed = [each.namespaces for each in known if each.namespaces is not None]
    return PodSelection.from_requirements(
        [requirement for each in known for requirement in each.requirements],
        namespaces=frozenset.intersection(*listed) if listed else None,
        counts_terminating=True,
    )


def _resolved(term: AffinityTerm, nodes: Nodes) -> PodSelection | None:
    """The selection of an incoming pod's term, with its namespace selector resolved to names.

    A selector that matches a namespace without labels selects every namespace, because
    kube-scheduler also tries it without labels."""
    if term.selection is None or term.of_namespaces is None:
        return term.selection
    if term.matches_namespace({}):
        return replace(term.selection, namespaces=None)
    meant = {
        name
        for name, namespace in nodes.objects_in(Namespace, "").items()
        if term.matches_namespace(namespace.metadata.labels)
    }
    return replace(
        term.selection, namespaces=frozenset(meant.union(term.selection.namespaces or ()))
    )


def _is_about(term: AffinityTerm, pod: Pod, nodes: Nodes) -> bool:
    """Where there is no term, an answer does not depend on namespaces."""
    return term.matches(pod, _labels_of(pod.namespace, nodes))


def _labels_of(namespace: str, nodes: Nodes) -> Mapping[str, str]:
    found = nodes.objects_in(Namespace, "").get(namespace)
    return {} if found is None else found.metadata.labels


# Sums by domain.


def _in_domain(of_rows: IntArray | FloatArray, key: str, nodes: Nodes) -> IntArray:
    """The sum over each node's domain, clipped; 0 if the node lacks the label."""
    numbers, values = nodes.everything.label_numbers(key)
    rows = _rows_in_domains(of_rows, key, nodes.everything)
    sums = np.bincount(numbers[rows], of_rows[rows].astype(np.float64), len(values) + 1)
    whole = sums.clip(-_LARGEST_SUM, _LARGEST_SUM).astype(np.int64)
    # The last sum stays 0: the number -1, of nodes without the label, wraps to it.
    return whole.take(nodes.label_numbers(key)[0], mode="wrap")


def _sum_in_domains(of_rows: IntArray, key: str, whole: Nodes) -> int:
    return int(of_rows[_rows_in_domains(of_rows, key, whole)].sum())


def _are_in_domain(of_rows: IntArray, key: str, whole: Nodes) -> bool:
    """Whether any of these pods is on a node with the label."""
    return bool(len(_rows_in_domains(of_rows, key, whole)))


def _rows_in_domains(of_rows: IntArray | FloatArray, key: str, whole: Nodes) -> Rows:
    """The rows with such pods whose node has the label; usually few."""
    rows = np.flatnonzero(of_rows != 0)
    return rows[whole.label_numbers(key)[0][rows] >= 0]
