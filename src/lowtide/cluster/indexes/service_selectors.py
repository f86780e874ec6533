"""The selectors of Services, found by the labels of a pod: one lookup per label, not per Service.

Plugins read them through `nodes.selected_by_services`."""

from collections.abc import Mapping
from typing import Any

from lowtide.cluster.groups import Groups
from lowtide.cluster.indexes.index import Index
from lowtide.cluster.table import Table
from lowtide.objects.pod import Pod
from lowtide.objects.workloads import Service

_Label = tuple[str, str, str]  # a namespace, a key and its value


class ServiceSelectors(Index):
    def __init__(self, table: Table) -> None:
        super().__init__(table)
        # Each selector is filed under one of its labels, then by Service name.
        self._by_label: Groups[_Label, str, Mapping[str, str]] = Groups()

    def selected_by_services(self, pod: Pod) -> dict[str, str]:
        """The combined selectors of the Services that select this pod."""
        found: dict[str, str] = {}
        if self._by_label:
            labels, namespace = pod.labels, pod.namespace
            for key, value in labels.items():
                for selector in self._by_label.group((namespace, key, value)).values():
                    if selector.items() <= labels.items():
                        found |= selector
        return found

    def object_changed(self, before: Any, after: Any) -> None:
        if isinstance(before, Service) and before.spec.selector:
            self._by_label.drop(_label_of(before), before.metadata.name)
        if isinstance(after, Service) and after.spec.selector:
            self._by_label.put(_label_of(after), after.metadata.name, after.spec.selector)


def _label_of(service: Service) -> _Label:
    key, value = min(service.spec.selector.items())
    return service.metadata.namespace, key, value
