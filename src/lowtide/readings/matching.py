"""Finds the node that a series belongs to, by the labels that Prometheus setups use.

Used by the meter, by links and for PrometheusQuery."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Generic, TypeVar

import msgspec

from lowtide.objects.node import Node
from lowtide.readings.request import MatchLabel
from lowtide.readings.series import Series

MatchedRows = tuple[int, ...]
Key = TypeVar("Key")
Target = tuple[str, str, str, str, str]  # the values of TARGET_LABELS, "" for a missing label


class NodeIdentity(msgspec.Struct, frozen=True):
    """The values that may name a node in a label: its name, hostname and addresses."""

    name: str
    hostname: str = ""
    addresses: tuple[str, ...] = ()


def identity_of(node: Node) -> NodeIdentity:
    return NodeIdentity(
        name=node.name,
        hostname=node.labels.get("kubernetes.io/hostname", ""),
        addresses=tuple(address.address for address in node.status.addresses),
    )


class NodeMatcher:
    """Matches series to nodes; a row is an index into `identities`.

    `auto` first reads the label `node`, then `kubernetes_node`, as a Node's name. Then it reads
    `nodename` (from the series, or from the `node_uname_info` with the same instance and job) and
    `instance`. Either is enough; if both name nodes, they must agree on one."""

    def __init__(
        self, identities: Sequence[NodeIdentity], uname: Iterable[Series], label: MatchLabel
    ) -> None:
        self._label = label
        self._by_name: dict[str, MatchedRows] = {}
        by_hostname = _Index[str]()
        by_instance = _Index[str]()
        for row, identity in enumerate(identities):
            rows: MatchedRows = (row,)
            self._by_name[identity.name] = rows
            for alias in {identity.name.lower(), identity.hostname.lower()} - {""}:
                by_hostname.include(alias, rows)
                by_instance.include(alias, rows)
            for address in identity.addresses:
                by_instance.include(plain_address(address), rows)
        self._by_hostname = by_hostname.sorted()
        self._by_instance = by_instance.sorted()
        of_target = _Index[tuple[str, str]]()
        of_instance = _Index[str]()
        for one in uname:
            get = one.labels.get
            rows = self._by_hostname.get(get("nodename", "").lower(), ())
            instance = get("instance", "")
            of_target.include((instance, get("job", "")), rows)
            of_instance.include(instance, rows)
        self._uname_of_target = of_target.sorted()
        self._uname_of_instance = of_instance.sorted()

    def candidates(self, series: Iterable[Series]) -> list[MatchedRows]:
        """For each series, the rows that its labels may mean. Only a single row is a match."""
        judged: dict[Target, MatchedRows] = {}
        targets = targets_of(one.labels for one in series)
        for target in targets:
            if target not in judged:
                judged[target] = self.rows_of(target)
        return [judged[target] for target in targets]

    def rows_of(self, target: Target) -> MatchedRows:
        """The rows that these labels may mean: none, one match, or several candidates."""
        node, kubernetes_node, nodename, instance, job = target
        match self._label:
            case "node":
                return self._by_name.get(node, ())
            case "kubernetes_node":
                return self._by_name.get(kubernetes_node, ())
            case "nodename":
                return self._rows_by_nodename(nodename, instance, job)
            case "instance":
                return self._by_instance.get(host_of(instance), ())
            case "auto":
                return (
                    self._by_name.get(node, ())
                    or self._by_name.get(kubernetes_node, ())
                    or _agreed(
                        self._rows_by_nodename(nodename, instance, job),
                        self._by_instance.get(host_of(instance), ()),
                    )
                )

    def _rows_by_nodename(self, nodename: str, instance: str, job: str) -> MatchedRows:
        if nodename:
            return self._by_hostname.get(nodename.lower(), ())
        rows = self._uname_of_target.get((instance, job))
        # If another job scraped node_uname_info, match by the instance alone.
        return self._uname_of_instance.get(instance, ()) if rows is None else rows


def targets_of(labels: Iterable[dict[str, str]]) -> list[Target]:
    """The labels that may name each series' node. All devices of one exporter share them."""
    return [
        (
            get("node", ""),
            get("kubernetes_node", ""),
            get("nodename", ""),
            get("instance", ""),
            get("job", ""),
        )
        for get in (each.get for each in labels)
    ]


class _Index(Generic[Key]):
    """Collects rows by name and sorts them once at the end; sorting at each addition would take
    quadratic time."""

    def __init__(self) -> None:
        self._rows: dict[Key, set[int]] = {}

    def include(self, key: Key, rows: MatchedRows) -> None:
        self._rows.setdefault(key, set()).update(rows)

    def sorted(self) -> dict[Key, MatchedRows]:
        return {key: tuple(sorted(rows)) for key, rows in self._rows.items()}


def _agreed(named: MatchedRows, addressed: MatchedRows) -> MatchedRows:
    if named == addressed:
        return named
    return tuple(sorted({*named} & {*addressed} or {*named} | {*addressed}))


def host_of(instance: str) -> str:
    """The host part of `name`, `name:port`, an IP address with or without port, or `[v6]:port`."""
    if instance.startswith("["):
        return plain_address(instance[1:].partition("]")[0])
    if instance.count(":") == 1:
        return instance.partition(":")[0].lower()
    return plain_address(instance)


def plain_address(address: str) -> str:
    """The address in one canonical spelling: an IPv6 address has many."""
    if ":" not in address:
        return address.lower()
    try:
        return str(ip_address(address))
    except ValueError:
        return address.lower()
