"""Helm's chart in deploy/, as the tests of it have Helm fill it in."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "lowtide"
MONITORING = tuple(
    f"monitoring.{each}=true" for each in ("serviceMonitor", "prometheusRule", "dashboard")
)


def templated(helm: Path, release: str, *settings: str) -> str:
    flags = [word for setting in settings for word in ("--set", setting)]
    return subprocess.run(
        [helm, "template", release, CHART, "--namespace=kube-system", *flags],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
