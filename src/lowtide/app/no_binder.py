"""Where no plugin binds a pod: offline, and in the extender, which binds only what it is asked
to."""

from lowtide.framework.plugin import BindOutcome, Pod


class NoBinder:
    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        raise RuntimeError(f"in this mode no plugin binds {pod.key} to {node_name}")

    async def bind_volumes(self, pod: Pod, node_name: str, timeout_seconds: float) -> str | None:
        raise RuntimeError(f"in this mode no plugin binds volumes of {pod.key}")
