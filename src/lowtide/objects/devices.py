"""DeviceClass, as far as DynamicResources reads it: which extended resource its devices serve."""

from lowtide.objects.meta import ObjectMeta, Wire

# Every class serves a resource of this name followed by its own, named in its spec or not.
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"


class DeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()

    def serves(self, resource: str) -> bool:
        """Whether pods get its devices by asking for this resource."""
        own = f"{IMPLICIT_RESOURCE_PREFIX}{self.metadata.name}"
        return resource == own or (bool(resource) and resource == self.spec.extended_resource_name)
