"""Services and controllers with the fields that plugins read: their pod selectors.

PodTopologySpread uses them to find the pods that belong together.
"""

from lowtide.objects.meta import LabelSelector, ObjectMeta, Wire


class ServiceSpec(Wire, frozen=True):
    selector: dict[str, str] = {}


class Service(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Wire, frozen=True):
    selector: dict[str, str] = {}


class ReplicationController(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Wire, frozen=True):
    selector: LabelSelector | None = None


class StatefulSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
