import pytest

from lowtide.localcluster.failures import StatusError
from lowtide.localcluster.selectors import Selection, parse_fields, parse_labels

POD = {
    "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
    "spec": {"nodeName": "a"},
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", True, id="selects all when it is empty"),
        pytest.param("app=web", True, id="selects an equal value"),
        pytest.param("app==web,tier=front", True, id="selects when all parts hold"),
        pytest.param("app=web,tier=back", False, id="rejects when one part does not hold"),
        pytest.param("app!=web", False, id="rejects an unequal part"),
        pytest.param("zone!=x", True, id="takes an absent label as unequal"),
        pytest.param("app in (db, web)", True, id="selects one of several"),
        pytest.param("app notin (db,web),tier", False, id="rejects one of several"),
        pytest.param("app", True, id="selects by existence"),
        pytest.param("!app", False, id="rejects by existence"),
    ],
)
def test_label_selector(text: str, want: bool) -> None:
    assert Selection(labels=parse_labels(text)).matches(POD) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("metadata.name=p,metadata.namespace=default", True, id="knows name and space"),
        pytest.param("spec.nodeName=a", True, id="selects by node"),
        pytest.param("spec.nodeName!=a", False, id="rejects by node"),
        pytest.param("spec.nodeName=", False, id="finds a bound pod not unbound"),
        pytest.param("status.phase!=Failed", True, id="takes an absent field as empty"),
    ],
)
def test_field_selector(text: str, want: bool) -> None:
    known = {"spec.nodeName": "spec.nodeName", "status.phase": "status.phase"}
    assert Selection(fields=parse_fields(text, known)).matches(POD) is want


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "=x", "a,,b"])
def test_bad_label_selector_is_rejected(text: str) -> None:
    with pytest.raises(StatusError) as rejected:
        parse_labels(text)
    assert rejected.value.code == 400


def test_unknown_field_is_rejected_in_the_real_wording() -> None:
    with pytest.raises(StatusError, match=r"^field label not supported: spec\.foo$"):
        parse_fields("spec.foo=1", {})


@pytest.mark.timeout(60)  # where time grows with the square of the length, it takes hours
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a=" + " " * 1_000_000 + "(", id="space before what is wrong"),
        pytest.param(" " * 1_000_000 + "(", id="space alone"),
        pytest.param("," * 1_000_000, id="commas"),
    ],
)
def test_a_long_selector_is_rejected_at_once(text: str) -> None:
    with pytest.raises(StatusError):
        parse_labels(text)
