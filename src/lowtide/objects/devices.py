"""DeviceClass with the fields that DynamicResources reads: the extended resource it serves."""

from lowtide.objects.meta import ObjectMeta, Wire

# Every class also serves the resource with this prefix and the class's name.
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"


class DeviceClassSpec(Wire, frozen=True):
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()

    def serves(self, resource: str) -> bool:
        """True if pods get devices of this class by requesting the resource."""
        own = f"{IMPLICIT_RESOURCE_PREFIX}{self.metadata.name}"
        return resource == own or (bool(resource) and resource == self.spec.extended_resource_name)
