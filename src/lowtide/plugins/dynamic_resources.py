"""DynamicResources: rejects every pod that claims devices, because Lowtide does not allocate any
yet. For all other pods it answers as kube-scheduler's plugin does."""

import numpy as np

from lowtide.framework.plugin import (
    OBJECTS,
    IntArray,
    Nodes,
    Pod,
    PodRejection,
    PostFilterContext,
    PostFiltered,
)
from lowtide.objects.devices import DeviceClass
from lowtide.objects.requests import asked_requests


class DynamicResources:
    name = "DynamicResources"
    retry_on = OBJECTS
    kinds = (DeviceClass,)
    scale = "highest_best"

    def pre_filter(self, pod: Pod, nodes: Nodes) -> PodRejection | None:
        if pod.spec.resource_claims:
            names = " ".join(claim.name for claim in pod.spec.resource_claims)
            return PodRejection(f"Lowtide does not allocate resource claims: [{names}]")
        classes = nodes.objects(DeviceClass)
        if not classes:
            return None
        for resource in sorted(name for name, amount in asked_requests(pod).items() if amount):
            for device_class in classes.values():
                if device_class.serves(resource):
                    return PodRejection(
                        f"Lowtide does not allocate devices: {resource} is served by "
                        f"device class {device_class.metadata.name}"
                    )
        return None

    def score(self, pod: Pod, nodes: Nodes) -> IntArray:
        return np.zeros(len(nodes), np.int64)

    def post_filter(self, pod: Pod, nodes: Nodes, rejected: PostFilterContext) -> PostFiltered:
        if not rejected.was_reached(self.name):
            return PostFiltered("not found", is_error=True)
        is_asked = self.pre_filter(pod, nodes) is not None
        return PostFiltered("still not schedulable" if is_asked else "no new claims to deallocate")
