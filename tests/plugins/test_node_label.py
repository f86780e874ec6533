"""NodeLabel: admits only nodes that carry a label."""

from collections.abc import Mapping

import pytest

from lowtide.framework.verdict_cache import VerdictCache
from lowtide.plugins.node_label import NodeLabel, NodeLabelArgs
from lowtide.scheduler.decide import decide
from lowtide.testing import make_node, make_pod, make_profile, make_state, place, rejections

LABEL = "filter.xy.com"


def plugin(label: str = LABEL, value: str | None = None) -> NodeLabel:
    return NodeLabel(NodeLabelArgs(label=label, value=value))


@pytest.mark.parametrize(
    ("labels", "value", "want"),
    [
        pytest.param({LABEL: "true"}, None, [], id="accepts a node with the label"),
        pytest.param({LABEL: ""}, None, [], id="accepts a node whose label is empty"),
        pytest.param({}, None, [LABEL], id="rejects a node without the label"),
        pytest.param({"other": "true"}, None, [LABEL], id="rejects a node with another label"),
        pytest.param({LABEL: "true"}, "true", [], id="accepts the value"),
        pytest.param({LABEL: "no"}, "true", [f"{LABEL}=true"], id="rejects another value"),
        pytest.param({}, "true", [f"{LABEL}=true"], id="rejects a node without that value"),
        pytest.param({LABEL: ""}, "", [], id="accepts the empty value"),
        pytest.param(
            {LABEL: "x"}, "", [f"{LABEL}="], id="rejects a value where an empty one is required"
        ),
    ],
)
def test_filter(labels: Mapping[str, str], value: str | None, want: list[str]) -> None:
    state = make_state([make_node("a", labels=labels)])
    told = {"a": [f"node(s) did not have label {each}" for each in want]} if want else {}
    assert rejections(plugin(value=value), make_pod(), state) == told


def test_each_node_without_it_is_told_why() -> None:
    nodes = [make_node("a", labels={LABEL: "true"}), make_node("b"), make_node("c")]
    decision = place([plugin()], make_pod(), nodes)
    assert decision.node_name == "a"
    told = {name: (each.plugin, each.reasons) for name, each in decision.rejections.items()}
    reason = ("NodeLabel", (f"node(s) did not have label {LABEL}",))
    assert told == {"b": reason, "c": reason}


@pytest.mark.parametrize(
    ("label", "value", "want"),
    [
        pytest.param(LABEL, None, LABEL, id="names the label"),
        pytest.param("cpu", "true", "cpu=true", id="names the label and the value"),
    ],
)
def test_a_pod_for_which_no_node_has_the_label(label: str, value: str | None, want: str) -> None:
    decision = place([plugin(label, value)], make_pod(), [make_node(name) for name in "abc"])
    assert (decision.node_name, decision.rejected_by) == (None, frozenset({"NodeLabel"}))
    assert decision.fit_error == f"0/3 nodes are available: all node do not have label {want}."


def test_a_cluster_without_nodes_is_not_blamed_on_labels() -> None:
    decision = place([plugin()], make_pod(), [])
    assert decision.pod_rejection is None
    assert decision.fit_error == "no nodes available to schedule pods"


def test_the_last_node_with_the_label_may_come_and_go() -> None:
    state = make_state([make_node("a")])
    verdicts = VerdictCache(make_profile([plugin()]), state)

    def decided() -> str:
        decision = decide(make_pod(), verdicts, turn=0)
        return decision.node_name or decision.fit_error

    found = [decided()]
    state.add_node(make_node("b", labels={LABEL: "true"}))
    found.append(decided())
    state.remove_node("b")
    found.append(decided())
    state.update_node(make_node("a", labels={LABEL: "true"}))
    found.append(decided())
    nowhere = f"0/1 nodes are available: all node do not have label {LABEL}."
    assert found == [nowhere, "b", nowhere, "a"]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(None, ["true", "true", "false"], id="logs by key"),
        pytest.param("true", ["true", "false", "false"], id="logs by key and value"),
    ],
)
def test_verdicts_in_words(value: str | None, want: list[str]) -> None:
    nodes = [
        make_node("a", labels={LABEL: "true"}),
        make_node("b", labels={LABEL: "no"}),
        make_node("c"),
    ]
    told = list(plugin(value=value).filter_log_lines(make_pod(), make_state(nodes).nodes()))
    assert told == [
        f"Node[ {name} ] Special Label Value: {has}" for name, has in zip("abc", want, strict=True)
    ]


@pytest.mark.parametrize(
    ("label", "want"),
    [
        pytest.param("disk", [], id="accepts a plain key"),
        pytest.param("filter.xy.com", [], id="accepts a key with dots"),
        pytest.param("example.com/disk_type", [], id="accepts a key with a prefix"),
        pytest.param(
            "cpu=true",
            ["must be the label's key alone, not 'cpu=true'; write label: cpu and value: \"true\""],
            id="says how to write a value",
        ),
        pytest.param(
            "",
            [
                "must be the key of the label that NodeLabel looks for, such as "
                "example.com/disk, and is empty"
            ],
            id="needs a label",
        ),
        pytest.param(
            "=true",
            [
                "must be the key of the label that NodeLabel looks for, such as "
                "example.com/disk, and is '=true'"
            ],
            id="needs a key before a value",
        ),
        pytest.param(
            "a" * 64,
            [
                "must be the key of the label that NodeLabel looks for, such as "
                f"example.com/disk, and is '{'a' * 64}'"
            ],
            id="rejects a key that is too long",
        ),
        pytest.param(
            "a/b/c",
            [
                "must be the key of the label that NodeLabel looks for, such as "
                "example.com/disk, and is 'a/b/c'"
            ],
            id="rejects an invalid key",
        ),
    ],
)
def test_args(label: str, want: list[str]) -> None:
    assert [text for _, text in NodeLabelArgs(label=label).problems()] == want


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        pytest.param("", True, id="accepts the empty value"),
        pytest.param(
            "m5.large_a-1", True, id="accepts letters, digits, dots, underscores and dashes"
        ),
        pytest.param("a" * 63, True, id="accepts the longest value"),
        pytest.param("a" * 64, False, id="rejects a longer value"),
        pytest.param("a b", False, id="rejects a space"),
        pytest.param("-a", False, id="rejects a leading dash"),
        pytest.param("ä", False, id="rejects letters outside ASCII"),
    ],
)
def test_a_value(value: str, is_right: bool) -> None:
    told = (
        f"must be what a label can have: at most 63 letters, digits, '-', '_' or '.', with a "
        f"letter or digit at both ends, not {value!r}"
    )
    want = [] if is_right else [("value", told)]
    assert list(NodeLabelArgs(label="disk", value=value).problems()) == want
