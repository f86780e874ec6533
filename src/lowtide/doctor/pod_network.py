"""Exporters that sit in a pod's network and so count a pod's traffic: certain where the pod is
known, likely where a target has nothing but a pod's devices and hardly any traffic."""

import math
from collections.abc import Iterator
from typing import Final

from lowtide.doctor import fixes
from lowtide.doctor.coverage import pod_network_finding
from lowtide.doctor.evidence import Survey, Target
from lowtide.doctor.findings import Code, Finding, Severity
from lowtide.doctor.questions import LOOPBACK

POD_DEVICES: Final = frozenset({LOOPBACK, "eth0"})
# What scrapes alone make: a pod that only answers them carries less.
SCRAPES_BYTES_PER_SECOND: Final = 50_000.0


def pod_network(survey: Survey) -> Iterator[Finding]:
    certain = {
        row
        for target in survey.targets
        if len(target.rows) == 1 and target.pod is not None and not target.pod.is_on_host_network
        for row in target.rows
    }
    if certain:
        yield pod_network_finding(survey, certain)
    likely = [target for target in survey.targets if _looks_like_a_pod(target, survey)]
    rows = {row for target in likely if len(target.rows) == 1 for row in target.rows} - certain
    if rows:
        yield Finding(
            code=Code.POD_NETWORK,
            text="node_exporter seems to run in a pod's network there: it shows no devices but lo "
            f"and eth0, with less than {SCRAPES_BYTES_PER_SECOND / 1000:.0f} kB/s, and its "
            "target is at no address of the node; it should run in the host's network",
            fix=fixes.HOST_NETWORK,
            nodes=survey.names(rows),
        )
    if not survey.evidence.pods and any(not target.rows for target in likely):
        yield Finding(
            code=Code.POD_NETWORK,
            text="the targets that belong to no node show no devices but lo and eth0, as "
            "node_exporter does in a pod's network; it should run in the host's",
            fix=fixes.HOST_NETWORK,
            severity=Severity.NOTE,
        )


def _looks_like_a_pod(target: Target, survey: Survey) -> bool:
    is_quiet = math.isnan(target.bytes_per_second) or (
        target.bytes_per_second < SCRAPES_BYTES_PER_SECOND
    )
    return (
        target.pod is None
        and target.devices == POD_DEVICES
        and not target.shows_host_devices
        and is_quiet
        and target.host not in survey.node_addresses
    )
