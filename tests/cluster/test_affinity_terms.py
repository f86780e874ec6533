"""What a pod asks of the pods around it, as it is read from its spec."""

from typing import Any

import pytest

from lowtide.cluster.affinity_terms import (
    AffinityTerm,
    PodTerms,
    Preference,
    Purpose,
    terms_of,
)
from lowtide.cluster.pod_selection import PodSelection, labels_required
from lowtide.objects.meta import LabelRequirement
from lowtide.objects.pod import Pod
from lowtide.testing import make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
BAD = {"matchExpressions": [{"key": "app", "operator": "Near"}]}


def term(key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": WEB, **more}


def pod_with(**affinity: Any) -> Pod:
    return make_pod(namespace="here", spec={"affinity": affinity})


def near(*terms: dict[str, Any]) -> Pod:
    return pod_with(podAffinity={REQUIRED: list(terms)})


def web_in(*namespaces: str) -> PodSelection:
    return PodSelection.from_requirements(
        labels_required({"app": "web"}), namespaces=namespaces, counts_terminating=True
    )


def test_every_list_is_read() -> None:
    pod = pod_with(
        podAffinity={
            REQUIRED: [term("a")],
            PREFERRED: [{"weight": 3, "podAffinityTerm": term("b")}],
        },
        podAntiAffinity={
            REQUIRED: [term("c")],
            PREFERRED: [{"weight": 4, "podAffinityTerm": term("d")}],
        },
    )
    a, b, c, d = (AffinityTerm(key, web_in("here")) for key in "abcd")
    assert terms_of(pod) == PodTerms(
        affinity=(a,),
        anti_affinity=(c,),
        preferences=(Preference(3, b), Preference(-4, d)),
    )
    assert list(terms_of(pod).carried()) == [
        (Purpose.ATTRACTS, 0, a),
        (Purpose.REJECTS, 0, c),
        (Purpose.WEIGHS, 3, b),
        (Purpose.WEIGHS, -4, d),
    ]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="no affinity"),
        pytest.param(pod_with(nodeAffinity={}), id="node affinity"),
        pytest.param(pod_with(podAffinity={}), id="no terms"),
    ],
)
def test_there_are_no_terms_in(pod: Pod) -> None:
    assert terms_of(pod) == PodTerms()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param(
            term(namespaces=["b", "a"]),
            AffinityTerm("zone", web_in("a", "b")),
            id="listed namespaces instead of the pod's own",
        ),
        pytest.param(
            term(namespaceSelector={}),
            AffinityTerm("zone", web_in(), of_namespaces=()),
            id="every namespace",
        ),
        pytest.param(
            term(namespaces=["a"], namespaceSelector={"matchLabels": {"team": "x"}}),
            AffinityTerm("zone", web_in("a"), (LabelRequirement("team", "In", ["x"]),)),
            id="listed namespaces and those with a label",
        ),
        pytest.param(
            {"topologyKey": "zone"}, AffinityTerm("zone", None), id="no pod without a selector"
        ),
        pytest.param(
            term(matchLabelKeys=["app"], mismatchLabelKeys=["pod-hash"]),
            AffinityTerm("zone", web_in("here")),
            id="keys that the API server has put into the selector",
        ),
    ],
)
def test_a_term_means(given: dict[str, Any], read: AffinityTerm) -> None:
    assert terms_of(near(given)).affinity == (read,)


def test_the_order_of_requirements_does_not_matter() -> None:
    one = {"key": "a", "operator": "Exists"}
    other = {"key": "b", "operator": "DoesNotExist"}
    either, reverse = (
        terms_of(
            near(
                term(
                    labelSelector={"matchExpressions": order},
                    namespaceSelector={"matchExpressions": order},
                )
            )
        ).affinity[0]
        for order in ([one, other], [other, one])
    )
    assert either == reverse
    assert hash(either) == hash(reverse)


@pytest.mark.parametrize(
    ("given", "namespace_labels", "is_match"),
    [
        pytest.param(term(), {}, True, id="matches a pod of its own namespace"),
        pytest.param(
            term(labelSelector={"matchLabels": {"app": "db"}}), {}, False, id="requires the labels"
        ),
        pytest.param(term(namespaces=["there"]), {}, False, id="ignores other namespaces"),
        pytest.param(
            term(namespaceSelector={}),
            {},
            True,
            id="matches any namespace with an empty namespaceSelector",
        ),
        pytest.param(
            term(namespaceSelector={"matchLabels": {"team": "x"}}),
            {"team": "x"},
            True,
            id="matches a namespace by its labels",
        ),
        pytest.param(
            term(namespaceSelector={"matchLabels": {"team": "x"}}),
            {"team": "y"},
            False,
            id="ignores a namespace with other labels",
        ),
        pytest.param({"topologyKey": "zone"}, {}, False, id="matches nothing without a selector"),
    ],
)
def test_matches(given: dict[str, Any], namespace_labels: dict[str, str], is_match: bool) -> None:
    pod = make_pod(namespace="here", labels={"app": "web"})
    assert terms_of(near(given)).affinity[0].matches(pod, namespace_labels) is is_match


def test_a_list_with_a_bad_term_is_empty_and_says_why() -> None:
    pod = pod_with(
        podAffinity={
            REQUIRED: [term(), term(labelSelector=BAD)],
            PREFERRED: [{"weight": 3, "podAffinityTerm": term()}],
        },
        podAntiAffinity={
            PREFERRED: [{"weight": 4, "podAffinityTerm": term(namespaceSelector=BAD)}]
        },
    )
    operator = 'matchExpressions[0].operator: "Near" is not a valid label selector operator'
    assert terms_of(pod) == PodTerms(
        preferences=(Preference(3, AffinityTerm("zone", web_in("here"))),),
        problems=(
            f"requiredAffinityTerms: spec.affinity.podAffinity.{REQUIRED}[1].labelSelector."
            f"{operator}",
            f"preferredAntiAffinityTerms: spec.affinity.podAntiAffinity.{PREFERRED}[0]."
            f"podAffinityTerm.namespaceSelector.{operator}",
        ),
    )
