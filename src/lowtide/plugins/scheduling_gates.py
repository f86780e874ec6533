"""SchedulingGates: keeps a pod out of the queue until all of its scheduling gates are removed."""

from lowtide.framework.plugin import Pod, PodRejection


class SchedulingGates:
    name = "SchedulingGates"
    retry_on = 0

    def may_enqueue(self, pod: Pod) -> PodRejection | None:
        if not pod.spec.scheduling_gates:
            return None
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return PodRejection(f"waiting for scheduling gates: [{gates}]")
