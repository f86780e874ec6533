"""What a pod is expected to carry: stated, learned from its like, or taken for granted."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from tests.readings.conftest import NOW

from lowtide.objects.pod import Pod
from lowtide.readings.demand import (
    MOST_OWNERS_REMEMBERED,
    Owners,
    PodTraffic,
    Traffic,
    ignores_traffic,
    limited,
    owner_of,
    stated_traffic,
)
from lowtide.readings.series import Series
from lowtide.testing import make_pod

EPOCH = 1_767_225_600.0  # 2026-01-01T00:00:00Z
WINDOW_SECONDS = 20.0
DEFAULT = Traffic(1000.0, 1000.0)


def pod(
    name: str = "pod",
    *,
    owner: tuple[str, str] | None = None,
    started: int | None = None,
    host_network: bool = False,
    **more: Any,
) -> Pod:
    """`owner` is a kind and a name, `started` in seconds into 2026."""
    made = make_pod(name, spec={"hostNetwork": host_network}, **more)
    meta, status = made.metadata, made.status
    if owner is not None:
        references = [{"kind": owner[0], "name": owner[1], "controller": True}]
        owned = msgspec.convert({"ownerReferences": references}, type(meta)).owner_references
        meta = msgspec.structs.replace(meta, owner_references=owned)
    if started is not None:
        running = {"phase": "Running", "startTime": f"2026-01-01T00:00:{started:02}Z"}
        status = msgspec.convert(running, type(status))
    return msgspec.structs.replace(made, metadata=meta, status=status)


def annotated(text: str, **more: str) -> Pod:
    return make_pod(annotations={"lowtide.dev/traffic": text, **more})


# What a pod states.


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("240M", Traffic(30e6, 30e6), id="means both directions"),
        pytest.param(" 240M ", Traffic(30e6, 30e6), id="may have spaces around"),
        pytest.param("receive=240M,transmit=80M", Traffic(30e6, 10e6), id="may name directions"),
        pytest.param(
            "transmit=80M , receive=240M",
            Traffic(30e6, 10e6),
            id="names them in any order",
        ),
        pytest.param("receive=240M", Traffic(30e6, 0.0), id="means none where one is not named"),
        pytest.param("receive=0,transmit=80M", Traffic(0.0, 10e6), id="may say none of one"),
        pytest.param("0", Traffic(0.0, 0.0), id="may say none of both"),
        pytest.param("ignore", Traffic(0.0, 0.0), id="means none where traffic is to be ignored"),
        pytest.param("", None, id="says nothing where it is empty"),
        pytest.param("much", None, id="says nothing where it is no quantity"),
        pytest.param("-80M", None, id="says nothing where it is negative"),
        pytest.param("receive=much", None, id="says nothing where a part is no quantity"),
        pytest.param("recieve=80M", None, id="says nothing where a direction is misspelt"),
        pytest.param("receive=80M;transmit=80M", None, id="says nothing with another separator"),
        pytest.param("receive=80M,", None, id="says nothing with an empty part"),
        pytest.param("receive=1M,receive=2M", None, id="says nothing where it contradicts itself"),
        pytest.param("IGNORE", None, id="is taken at its word"),
    ],
)
def test_an_annotation(text: str, want: Traffic | None) -> None:
    assert stated_traffic(annotated(text)) == want


@pytest.mark.parametrize(
    ("pod", "is_ignored"),
    [
        pytest.param(annotated("ignore"), True, id="says so"),
        pytest.param(annotated(" ignore "), True, id="says so with spaces"),
        pytest.param(annotated("0"), False, id="says that it carries none"),
        pytest.param(make_pod(), False, id="says nothing"),
    ],
)
def test_traffic_is_ignored_for_a_pod_that(pod: Pod, is_ignored: bool) -> None:
    assert ignores_traffic(pod) == is_ignored


# What limits let through.


@pytest.mark.parametrize(
    ("ingress", "egress", "want"),
    [
        pytest.param("8M", "16M", Traffic(1e6, 2e6), id="caps each direction, in bits"),
        pytest.param("8M", "", Traffic(1e6, 50e6), id="caps one direction alone"),
        pytest.param("8G", "8G", Traffic(50e6, 50e6), id="does not raise what is below it"),
        pytest.param("fast", "0", Traffic(50e6, 50e6), id="is left alone where it is no limit"),
    ],
)
def test_a_limit(ingress: str, egress: str, want: Traffic) -> None:
    annotations = {
        "kubernetes.io/ingress-bandwidth": ingress,
        "kubernetes.io/egress-bandwidth": egress,
    }
    given = {key: text for key, text in annotations.items() if text}
    assert limited(Traffic(50e6, 50e6), make_pod(annotations=given)) == want


# Whose pods are alike.


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), None, id="none without a controller"),
        pytest.param(
            pod(owner=("ReplicaSet", "web-7d4b9"), labels={"pod-template-hash": "7d4b9"}),
            ("default", "Deployment", "web"),
            id="the Deployment by the template's hash",
        ),
        pytest.param(
            pod(owner=("ReplicaSet", "web-7d4b9"), labels={"pod-template-hash": "other"}),
            ("default", "ReplicaSet", "web-7d4b9"),
            id="the ReplicaSet where the hash is another",
        ),
        pytest.param(
            pod(owner=("ReplicaSet", "web-7d4b9")),
            ("default", "ReplicaSet", "web-7d4b9"),
            id="the ReplicaSet where there is no hash",
        ),
        pytest.param(
            pod(owner=("Job", "backup-29123456")),
            ("default", "CronJob", "backup"),
            id="the CronJob by the time in a Job's name",
        ),
        pytest.param(
            pod(owner=("Job", "import-7")), ("default", "Job", "import-7"), id="a Job of its own"
        ),
        pytest.param(
            pod(owner=("StatefulSet", "db-29123456")),
            ("default", "StatefulSet", "db-29123456"),
            id="a StatefulSet",
        ),
        pytest.param(
            pod(owner=("Deployment", "web"), namespace="shop"),
            ("shop", "Deployment", "web"),
            id="within its namespace",
        ),
    ],
)
def test_the_owner_is(pod: Pod, want: tuple[str, str, str] | None) -> None:
    assert owner_of(pod) == want


# What is learned.


def series(**values: float) -> list[Series]:
    """What pods of these names carry."""
    return [
        Series({"namespace": "default", "pod": name}, value, NOW) for name, value in values.items()
    ]


def learned(
    pods: Sequence[Pod],
    receive: Mapping[str, float],
    transmit: Mapping[str, float] | None = None,
    *,
    owners: Owners | None = None,
    sampled_at: float = 59.0,
) -> PodTraffic:
    """What is expected after that; the window is 20 s long and ends at `sampled_at`."""
    owners = owners or Owners()
    owners.learn(
        series(**receive),
        series(**(receive if transmit is None else transmit)),
        pods,
        sampled_at=EPOCH + sampled_at,
        window_seconds=WINDOW_SECONDS,
    )
    return owners.expectation(DEFAULT)


WEB, DB, BATCH = ("StatefulSet", "web"), ("StatefulSet", "db"), ("StatefulSet", "batch")


def test_pods_of_one_owner_are_expected_to_carry_their_mean() -> None:
    pods = [
        pod("w1", owner=WEB, started=1),
        pod("w2", owner=WEB, started=1),
        pod("d1", owner=DB, started=1),
    ]
    expected = learned(pods, {"w1": 10, "w2": 20, "d1": 90}, {"w1": 1, "w2": 2, "d1": 9})
    assert expected.expected_for(pod("w3", owner=WEB)) == Traffic(15.0, 1.5)
    assert expected.expected_for(pod("d2", owner=DB)) == Traffic(90.0, 9.0)


def test_of_an_owner_that_was_not_seen_the_mean_of_all_pods_is_expected() -> None:
    pods = [
        pod("w1", owner=WEB, started=1),
        pod("w2", owner=WEB, started=1),
        pod("alone", started=1),
    ]
    expected = learned(pods, {"w1": 10, "w2": 20, "alone": 90})
    for unknown in (pod("b", owner=BATCH), pod("naked")):
        assert expected.expected_for(unknown) == Traffic(40.0, 40.0)  # (10 + 20 + 90) / 3


def test_before_any_pod_was_seen_the_default_is_expected() -> None:
    assert Owners().expectation(DEFAULT).expected_for(pod(owner=WEB)) == DEFAULT
    assert learned([pod("w1", owner=WEB, started=1)], {}).expected_for(pod(owner=WEB)) == DEFAULT


def test_the_pods_of_another_namespace_are_not_alike() -> None:
    pods = [
        pod("w1", owner=WEB, started=1),
        pod("w1", owner=WEB, started=1, namespace="shop"),
    ]
    expected = learned(pods, {"w1": 10})
    assert expected.expected_for(pod("w2", owner=WEB)) == Traffic(10.0, 10.0)
    assert learned(pods[1:], {"w1": 10}).expected_for(pod("w2", owner=WEB)) == DEFAULT


def test_a_statement_counts_before_what_was_learned_and_limits_cap_it() -> None:
    expected = learned([pod("w1", owner=WEB, started=1)], {"w1": 10e6})
    stated = {"lowtide.dev/traffic": "8M"}
    slow = {"kubernetes.io/ingress-bandwidth": "16M"}
    malformed = {"lowtide.dev/traffic": "much"}
    assert expected.expected_for(pod(owner=WEB, annotations=stated)) == Traffic(1e6, 1e6)
    assert expected.expected_for(pod(owner=WEB, annotations=slow)) == Traffic(2e6, 10e6)
    assert expected.expected_for(pod(owner=WEB, annotations=malformed)) == Traffic(10e6, 10e6)
    assert expected.expected_for(pod(annotations=slow)) == Traffic(2e6, 10e6)


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(
            pod("w2", owner=WEB, started=1, host_network=True),
            Traffic(10.0, 10.0),
            id="is on the host's network",
        ),
        pytest.param(
            pod("w2", owner=WEB, started=50), Traffic(10.0, 10.0), id="ran for less than half"
        ),
        pytest.param(
            pod("w2", owner=WEB), Traffic(10.0, 10.0), id="has not started: another had its name"
        ),
        pytest.param(
            pod("other", owner=WEB, started=1), Traffic(10.0, 10.0), id="was not measured"
        ),
    ],
)
def test_nothing_is_learned_from_a_pod_that(seen: Pod, want: Traffic) -> None:
    expected = learned([pod("w1", owner=WEB, started=1), seen], {"w1": 10, "w2": 90})
    assert (expected.expected_for(pod(owner=WEB)), expected.expected_for(pod(owner=DB))) == (
        want,
        want,
    )


@pytest.mark.parametrize(
    ("started", "want"),
    [
        pytest.param(49, 180.0, id="for half the window is scaled up by two"),  # 90 * 20/10
        pytest.param(43, 112.5, id="for most of it is scaled up by less"),  # 90 * 20/16
        pytest.param(39, 90.0, id="for all of it is taken as it is"),
        pytest.param(1, 90.0, id="for longer is taken as it is"),
    ],
)
def test_a_pod_that_ran(started: int, want: float) -> None:
    expected = learned([pod("w1", owner=WEB, started=started)], {"w1": 90})
    assert expected.expected_for(pod(owner=WEB)) == Traffic(want, want)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_what_is_not_plausible_is_not_learned(value: float) -> None:
    pods = [pod("w1", owner=WEB, started=1), pod("w2", owner=WEB, started=1)]
    assert learned(pods, {"w1": 10, "w2": value}).expected_for(pod(owner=WEB)) == Traffic(
        10.0, 10.0
    )


def test_an_owner_whose_pods_are_gone_is_remembered() -> None:
    owners = Owners()
    learned([pod("w1", owner=WEB, started=1)], {"w1": 10}, owners=owners)
    expected = learned([pod("d1", owner=DB, started=1)], {"d1": 90}, owners=owners)
    assert expected.expected_for(pod(owner=WEB)) == Traffic(10.0, 10.0)
    assert expected.expected_for(pod(owner=BATCH)) == Traffic(90.0, 90.0)


def test_newer_answers_count_for_half() -> None:
    owners = Owners()
    pods = [pod("w1", owner=WEB, started=1)]
    before = learned(pods, {"w1": 10}, owners=owners)
    after = learned(pods, {"w1": 30}, {"w1": 14}, owners=owners)
    assert after.expected_for(pod(owner=WEB)) == Traffic(20.0, 12.0)
    assert after.expected_for(pod(owner=DB)) == Traffic(30.0, 14.0)  # the mean of all that run now
    assert before.expected_for(pod(owner=WEB)) == Traffic(10.0, 10.0)  # what was handed out stays


def test_answers_without_a_pod_leave_what_is_known() -> None:
    owners = Owners()
    learned([pod("w1", owner=WEB, started=1)], {"w1": 10}, owners=owners)
    assert learned([], {}, owners=owners).expected_for(pod(owner=DB)) == Traffic(10.0, 10.0)


def test_only_so_many_owners_are_remembered_the_newest_of_all() -> None:
    owners = Owners()
    learned([pod("w1", owner=WEB, started=1)], {"w1": 7}, owners=owners)
    learned([pod("d1", owner=DB, started=1)], {"d1": 8}, owners=owners)
    learned([pod("w1", owner=WEB, started=1)], {"w1": 9}, owners=owners)
    count = MOST_OWNERS_REMEMBERED - 1
    names = [f"p{number}" for number in range(count)]
    many = [pod(name, owner=("StatefulSet", name), started=1) for name in names]
    expected = learned(many, dict.fromkeys(names, 1.0), owners=owners)
    assert expected.expected_for(pod(owner=WEB)) == Traffic(8.0, 8.0)
    assert expected.expected_for(pod(owner=DB)) == Traffic(1.0, 1.0)  # forgotten: the mean of all


def test_a_pod_whose_container_starts_again_goes_on_counting() -> None:
    owners = Owners()
    learned([pod("w1", owner=WEB, started=1)], {"w1": 10}, owners=owners)
    again = learned([pod("w1", owner=WEB, started=58)], {"w1": 30}, owners=owners)
    assert again.expected_for(pod(owner=WEB)) == Traffic(20.0, 20.0)
