"""DefaultBinder: binds a pod through the API server's binding subresource."""

from lowtide.framework.plugin import Binder, BindOutcome, Pod


class DefaultBinder:
    name = "DefaultBinder"
    needs = {"binder": Binder}

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    async def bind(self, pod: Pod, node_name: str) -> BindOutcome:
        return await self._binder.bind(pod, node_name)
