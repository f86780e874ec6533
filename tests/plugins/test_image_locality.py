"""ImageLocality: images that a node holds already, by size and by how many nodes hold them."""

from typing import Any

import pytest

from lowtide.objects.pod import Pod
from lowtide.plugins.image_locality import ImageLocality, full_image_name
from lowtide.testing import make_node, make_pod, make_state, place, scores

MIB = 1024 * 1024


def pod(*images: str, **spec: Any) -> Pod:
    return make_pod(spec={"containers": [{"image": image} for image in images], **spec})


@pytest.mark.parametrize(
    ("given", "full"),
    [
        pytest.param("app", "app:latest", id="adds the tag latest"),
        pytest.param("app:2", "app:2", id="keeps a tag"),
        pytest.param("r.io:5000/app", "r.io:5000/app:latest", id="does not take a port for a tag"),
        pytest.param("r.io:5000/app:2", "r.io:5000/app:2", id="finds the tag behind a port"),
        pytest.param("app@sha256:0a", "app@sha256:0a", id="keeps a digest"),
        pytest.param("", ":latest", id="adds a tag even to an empty name"),
    ],
)
def test_full_image_name(given: str, full: str) -> None:
    assert full_image_name(given) == full


def test_an_image_counts_by_the_share_of_nodes_that_hold_it() -> None:
    state = make_state(
        [
            make_node("a", images={"rare:1": 500 * MIB, "common:1": 500 * MIB}),
            make_node("b", images={"common:1": 500 * MIB}),
            make_node("c", images={"common:1": 500 * MIB, "other:1": 900 * MIB}),
        ]
    )
    # 100 * (500/3 - 23) // (1000 - 23) = 14
    assert scores(ImageLocality(), pod("rare:1"), state) == {"a": 14, "b": 0, "c": 0}
    # 100 * (500 - 23) // (1000 - 23) = 48
    assert scores(ImageLocality(), pod("common:1"), state) == {"a": 48, "b": 48, "c": 48}
    # 100 * (500 + 500/3 - 23) // (2000 - 23) = 32, and 100 * (500 - 23) // 1977 = 24
    both = scores(ImageLocality(), pod("common:1", "rare:1"), state)
    assert both == {"a": 32, "b": 24, "c": 24}
    assert scores(ImageLocality(), pod("nowhere:1"), state) == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("mebibytes", "score"),
    [
        pytest.param(22, 0, id="scores 0 below the lowest size"),
        pytest.param(23, 0, id="scores 0 at the lowest size"),
        pytest.param(33, 1, id="counts the bytes above the lowest size"),  # 100 * 10 // 977
        pytest.param(1000, 100, id="scores 100 at the highest size"),
        pytest.param(9000, 100, id="scores 100 above the highest size"),
    ],
)
def test_sizes(mebibytes: int, score: int) -> None:
    state = make_state([make_node("a", images={"app:1": mebibytes * MIB})])
    assert scores(ImageLocality(), pod("app:1"), state) == {"a": score}


def test_init_containers_and_image_volumes_count_and_only_containers_raise_the_highest() -> None:
    state = make_state([make_node("a", images={"app:1": 400 * MIB, "data:1": 300 * MIB})])
    mounted = [{"name": "data", "image": {"reference": "data:1"}}, {"name": "x", "emptyDir": {}}]
    initial = [{"image": "app:1"}]
    # 100 * (400 + 400 + 300 - 23) // (2000 - 23) = 54
    asked = pod("app:1", initContainers=initial, volumes=mounted)
    assert scores(ImageLocality(), asked, state) == {"a": 54}


def test_a_size_that_no_image_has_is_bounded() -> None:
    state = make_state([make_node("a", images={"app:1": 2**80}), make_node("b", images={"c": -5})])
    assert scores(ImageLocality(), pod("app:1", "app:1"), state) == {"a": 100, "b": 0}


def test_the_score_is_the_final_one() -> None:
    nodes = [make_node("a", images={"app:1": 500 * MIB}), make_node("b")]
    decision = place([ImageLocality()], pod("app:1"), nodes)
    assert {each.node_name: each.total for each in decision.best} == {"a": 23, "b": 0}


def test_images_of_any_size_are_no_more_than_the_highest_score() -> None:
    state = make_state([make_node("a", images={"huge:1": 2**80, "none:1": -5})])
    assert scores(ImageLocality(), pod(*["huge:1"] * 10_000), state) == {"a": 100}
    assert scores(ImageLocality(), pod("none:1"), state) == {"a": 0}
