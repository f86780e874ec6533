"""Rights (app/rights) as RBAC objects, in a manifest that says what each rule is for, and as the
table of the docs. `lowtide rights` and tools/deploy_files call it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import yaml

from lowtide.app.rights import Mode, Need, Right

_GROUP: Final = "rbac.authorization.k8s.io"
_API: Final = f"{_GROUP}/v1"


@dataclass(frozen=True, slots=True)
class Account:
    """The service account that is given rights, by roles of this name."""

    namespace: str
    name: str
    role_name: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role: rights that differ in their resource alone."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]
    why: str


def manifest_of(rights: Iterable[Right], account: Account) -> str:
    """YAML: a ClusterRole, a Role for each namespace, and their bindings."""
    documents = []
    for namespace, rules in _by_namespace(rights):
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


def objects_of(rights: Iterable[Right], account: Account) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifest_of(rights, account)))


def table_of(rights: Iterable[Right]) -> list[tuple[str, ...]]:
    """Rows for people: resource, verbs, where, modes, when, why."""
    return [
        (
            f"{right.resource}.{right.group}" if right.group else right.resource,
            ", ".join(right.verbs),
            _place(right),
            ", ".join(mode for mode in Mode if mode in right.modes),
            right.need if right.need is not Need.ALWAYS else "",
            right.why,
        )
        for right in rights
    ]


TABLE_HEADINGS: Final = ("resource", "verbs", "where", "modes", "only with", "what for")


def markdown_of(rights: Iterable[Right]) -> str:
    rows = [TABLE_HEADINGS, ("---",) * len(TABLE_HEADINGS), *table_of(rights)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _place(right: Right) -> str:
    if not right.namespace:
        return "cluster"
    return "/".join((right.namespace, *right.names))


def _by_namespace(rights: Iterable[Right]) -> Iterator[tuple[str, list[Rule]]]:
    """The whole cluster first."""
    by_namespace = sorted(rights, key=lambda right: right.namespace)
    for namespace, some in groupby(by_namespace, key=lambda right: right.namespace):
        yield namespace, _rules(list(some))


def _rules(rights: Sequence[Right]) -> list[Rule]:
    resources: dict[tuple[Any, ...], list[str]] = {}
    for right in rights:
        key = (right.group, right.verbs, right.names, right.why)
        resources.setdefault(key, []).append(right.resource)
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
