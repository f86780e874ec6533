"""The constraints of PodTopologySpread: the pod's own, or the configuration's defaults with a
selector from the pod's Services and controller."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from lowtide.cluster.pod_selection import PodSelection, labels_required, requirements_of
from lowtide.framework.plugin import Nodes, Pod
from lowtide.objects.meta import LabelRequirement, as_int32
from lowtide.objects.pod import TopologySpreadConstraint
from lowtide.objects.workloads import ReplicaSet, ReplicationController, StatefulSet

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

_HONOR = "Honor"
_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
Controller = ReplicationController | ReplicaSet | StatefulSet
_HAVE_SELECTORS: Mapping[tuple[str, str], type[Controller]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}

Requirements = tuple[LabelRequirement, ...]


class DefaultConstraint(TopologySpreadConstraint, frozen=True):
    """A default constraint in a configuration. Unlike in a pod, no API server sets defaults."""

    max_skew: int = 0
    when_unsatisfiable: str = ""

    def problems(self) -> Iterator[str]:
        """Each problem with its field, in kube-scheduler's words."""
        if self.max_skew <= 0:
            yield f".maxSkew: Invalid value: {self.max_skew}: not in valid range (0, inf)"
        if not self.topology_key:
            yield ".topologyKey: Required value: can not be empty"
        if not self.when_unsatisfiable:
            yield ".whenUnsatisfiable: Required value: can not be empty"
        elif self.when_unsatisfiable not in _ACTIONS:
            supported = ", ".join(f'"{action}"' for action in _ACTIONS)
            yield (
                f'.whenUnsatisfiable: Unsupported value: "{self.when_unsatisfiable}": '
                f"supported values: {supported}"
            )
        if self.label_selector is not None:
            yield (
                ".labelSelector: Forbidden: constraint must not define a selector, "
                "as they deduced for each pod"
            )


class PodTopologySpreadArgs(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True
):
    default_constraints: tuple[DefaultConstraint, ...] = ()
    """Constraints for pods without constraints of their own, if `defaultingType` is `List`. Same
    form as a pod's `spec.topologySpreadConstraints`, without `labelSelector`."""
    defaulting_type: Literal["System", "List"] = "System"
    """`System`: prefer a skew of at most 3 by host and 5 by zone. `List`: use
    `defaultConstraints`."""

    @property
    def is_system(self) -> bool:
        return self.defaulting_type == "System"

    @property
    def constraints(self) -> Sequence[TopologySpreadConstraint]:
        """The constraints for a pod without its own."""
        return _SYSTEM_CONSTRAINTS if self.is_system else self.default_constraints

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is wrong beyond types: field and text."""
        if self.is_system and self.default_constraints:
            text = 'Invalid value: "System": when .defaultConstraints are not empty'
            yield "defaultingType", text
        seen: set[tuple[str, str]] = set()
        for number, constraint in enumerate(self.default_constraints):
            for text in constraint.problems():
                yield "defaultConstraints", f"[{number}]{text}"
            key, action = constraint.topology_key, constraint.when_unsatisfiable
            if (key, action) in seen:
                text = f'[{number}]: Duplicate value: "{{{key}, {action}}}"'
                yield "defaultConstraints", text
            seen.add((key, action))


_SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint for one pod. Without a selector, `selection` is None and no pod matches."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    selection: PodSelection | None

    @property
    def counts_pods(self) -> bool:
        """False for an empty selector: it matches every pod, yet kube-scheduler counts none."""
        return self.selection is not None and bool(self.selection.requirements)

    def matches(self, pod: Pod) -> bool:
        return self.selection is not None and self.selection.matches(pod)


class Constraints:
    """Returns a pod's own constraints, or these defaults if it has none at all."""

    def __init__(self, defaults: Sequence[TopologySpreadConstraint]) -> None:
        self._defaults = {
            action: [each for each in defaults if each.when_unsatisfiable == action]
            for action in _ACTIONS
        }
        self._made_last: _Made | None = None

    def constraints_for(self, pod: Pod, nodes: Nodes, action: str) -> list[Constraint]:
        own = pod.spec.topology_spread_constraints
        if own:
            return [
                _constraint(given, _own_selection(given, pod))
                for given in own
                if given.when_unsatisfiable == action
            ]
        return self._made(pod, nodes).by_action[action] if self._defaults[action] else []

    def _made(self, pod: Pod, nodes: Nodes) -> "_Made":
        """The default constraints for the pod. The last ones are kept, because pods of one
        controller often follow each other."""
        labels, controller = nodes.selected_by_services(pod), _controller_of(pod, nodes)
        made = self._made_last
        if (
            made is not None
            and made.controller is controller
            and made.labels == labels
            and made.namespace == pod.namespace
        ):
            return made
        requirements = _requirements(labels, controller)
        selection = _selection(requirements, pod)
        by_action = {
            action: [_constraint(given, selection) for given in defaults if requirements]
            for action, defaults in self._defaults.items()
        }
        self._made_last = _Made(pod.namespace, labels, controller, by_action)
        return self._made_last


class _Made(NamedTuple):
    """Default constraints for a pod, and what their selector was made from."""

    namespace: str
    labels: Mapping[str, str]
    controller: Controller | None
    by_action: Mapping[str, list[Constraint]]


def _constraint(given: TopologySpreadConstraint, selection: PodSelection | None) -> Constraint:
    return Constraint(
        topology_key=given.topology_key,
        max_skew=as_int32(given.max_skew),
        min_domains=max(given.min_domains or 1, 1),
        honors_affinity=given.node_affinity_policy == _HONOR,
        honors_taints=given.node_taints_policy == _HONOR,
        selection=selection,
    )


def _own_selection(given: TopologySpreadConstraint, pod: Pod) -> PodSelection | None:
    if given.label_selector is None:
        return None
    keys = {key: pod.labels[key] for key in given.match_label_keys if key in pod.labels}
    return _selection((*labels_required(keys), *requirements_of(given.label_selector)), pod)


def _selection(requirements: Requirements, pod: Pod) -> PodSelection:
    return PodSelection.from_requirements(
        requirements, namespaces=[pod.namespace], counts_terminating=False
    )


def _controller_of(pod: Pod, nodes: Nodes) -> Controller | None:
    owner = pod.controller
    kind = _HAVE_SELECTORS.get((owner.api_version, owner.kind)) if owner else None
    return nodes.objects_in(kind, pod.namespace).get(owner.name) if owner and kind else None


def _requirements(labels: Mapping[str, str], controller: Controller | None) -> Requirements:
    """The requirements of the pod's controller and of the Services that select the pod (`labels`),
    combined."""
    if controller is None:
        return labels_required(labels)
    if isinstance(controller, ReplicationController):
        return labels_required({**labels, **controller.spec.selector})
    selector = controller.spec.selector
    return labels_required(labels) + (requirements_of(selector) if selector is not None else ())
