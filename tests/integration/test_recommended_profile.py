"""The recommended profile as it stands in examples/, with the Lease it leads by by default."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from tests.integration.test_prometheus_faults import vector

from realparts.process import Process

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lowtide"


def test_its_leader_places_pods_where_the_network_is_quiet(
    cluster: Any,
    fake_prometheus: Callable[..., Any],
    lowtide_scheduler: Callable[..., Process],
    examples: Path,
) -> None:
    for name in ("busy", "quiet"):
        cluster.create_node(name)
    prometheus = fake_prometheus(vector(quiet="1000", busy="100000000"))
    config = yaml.safe_load((examples / "04-recommended" / "scheduler-config.yaml").read_text())
    config["profiles"][0]["pluginConfig"][0]["args"]["prometheusAddress"] = prometheus.url
    lowtide_scheduler(config, cluster.kubeconfig)
    for name in ("first", "second"):
        cluster.create_pod(name)
        assert cluster.wait_for_placement(name) == "quiet"
    assert cluster.send("GET", LEASE, None)["spec"]["holderIdentity"]
