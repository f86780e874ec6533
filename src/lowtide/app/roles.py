"""Permissions (app/permissions) as RBAC objects, in a manifest that says what each rule is for, and
as the table of the docs. `lowtide rbac` and tools/deploy_files call it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import yaml

from lowtide.app.permissions import Mode, Need, Permission

_GROUP: Final = "rbac.authorization.k8s.io"
_API: Final = f"{_GROUP}/v1"


@dataclass(frozen=True, slots=True)
class Account:
    """The service account that is given permissions, by roles of this name."""

    namespace: str
    name: str
    role_name: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role: permissions that differ in their resource alone."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]
    why: str


def manifest_of(permissions: Iterable[Permission], account: Account) -> str:
    """YAML: a ClusterRole, a Role for each namespace, and their bindings."""
    documents = []
    for namespace, rules in _by_namespace(permissions):
        kind = "Role" if namespace else "ClusterRole"
        place = [f"  namespace: {namespace}"] if namespace else []
        documents.append(
            [
                f"apiVersion: {_API}",
                f"kind: {kind}",
                "metadata:",
                f"  name: {account.role_name}",
                *place,
                "rules:",
                *(line for rule in rules for line in _rule_lines(rule)),
            ]
        )
        documents.append(
            [
                f"apiVersion: {_API}",
                f"kind: {kind}Binding",
                "metadata:",
                f"  name: {account.role_name}",
                *place,
                "roleRef:",
                f"  apiGroup: {_GROUP}",
                f"  kind: {kind}",
                f"  name: {account.role_name}",
                "subjects:",
                "- kind: ServiceAccount",
                f"  name: {account.name}",
                f"  namespace: {account.namespace}",
            ]
        )
    return "---\n".join("\n".join(lines) + "\n" for lines in documents)


def objects_of(permissions: Iterable[Permission], account: Account) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifest_of(permissions, account)))


def table_of(permissions: Iterable[Permission]) -> list[tuple[str, ...]]:
    """Rows for people: resource, verbs, where, modes, when, why."""
    return [
        (
            f"{permission.resource}.{permission.group}"
            if permission.group
            else permission.resource,
            ", ".join(permission.verbs),
            _place(permission),
            ", ".join(mode for mode in Mode if mode in permission.modes),
            permission.need if permission.need is not Need.ALWAYS else "",
            permission.why,
        )
        for permission in permissions
    ]


TABLE_HEADINGS: Final = ("resource", "verbs", "where", "modes", "only with", "what for")


def markdown_of(permissions: Iterable[Permission]) -> str:
    rows = [TABLE_HEADINGS, ("---",) * len(TABLE_HEADINGS), *table_of(permissions)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _place(permission: Permission) -> str:
    if not permission.namespace:
        return "cluster"
    return "/".join((permission.namespace, *permission.names))


def _by_namespace(permissions: Iterable[Permission]) -> Iterator[tuple[str, list[Rule]]]:
    """The whole cluster first."""
    by_namespace = sorted(permissions, key=lambda permission: permission.namespace)
    for namespace, some in groupby(by_namespace, key=lambda permission: permission.namespace):
        yield namespace, _rules(list(some))


def _rules(permissions: Sequence[Permission]) -> list[Rule]:
    resources: dict[tuple[Any, ...], list[str]] = {}
    for permission in permissions:
        key = (permission.group, permission.verbs, permission.names, permission.why)
        resources.setdefault(key, []).append(permission.resource)
    return [
        Rule(group, tuple(some), verbs, names, why)
        for (group, verbs, names, why), some in resources.items()
    ]


def _rule_lines(rule: Rule) -> Iterator[str]:
    yield f"# {rule.why}"
    yield f'- apiGroups: ["{rule.group}"]'
    yield f"  resources: [{', '.join(rule.resources)}]"
    if rule.names:
        quoted = ", ".join(f'"{name}"' for name in rule.names)  # a name may hold a colon
        yield f"  resourceNames: [{quoted}]"
    yield f"  verbs: [{', '.join(rule.verbs)}]"
