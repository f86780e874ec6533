"""PodDisruptionBudgets, as far as preemption reads them: how many of their pods may go."""

from lowtide.objects.meta import LabelSelector, ObjectMeta, Wire


class PodDisruptionBudgetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, object] = {}  # by name, those whose eviction is under way


class PodDisruptionBudget(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
