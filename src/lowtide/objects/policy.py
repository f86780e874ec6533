"""PodDisruptionBudget with the fields that preemption reads: how many pods may be evicted."""

from lowtide.objects.meta import LabelSelector, ObjectMeta, Wire


class PodDisruptionBudgetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, object] = {}  # by name, pods that are being evicted


class PodDisruptionBudget(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
