from collections import Counter

from lowtide.localcluster import demo_nodes


def test_the_demo_has_twelve_nodes_in_three_racks_with_three_speeds() -> None:
    nodes = demo_nodes()
    assert len({node.name for node in nodes}) == 12
    assert Counter(node.labels["rack"] for node in nodes) == {
        "rack-a": 4,
        "rack-b": 4,
        "rack-c": 4,
    }
    assert {node.labels["topology.kubernetes.io/zone"] for node in nodes} == {
        "zone-a",
        "zone-b",
        "zone-c",
    }
    speeds = {link.capacity_bytes_per_second for node in nodes for link in node.links}
    assert speeds == {125_000_000, 1_250_000_000, 3_125_000_000}


def test_the_seed_picks_the_order_of_the_turns() -> None:
    assert demo_nodes(1) == demo_nodes(1)
    assert demo_nodes(1) != demo_nodes(2)
