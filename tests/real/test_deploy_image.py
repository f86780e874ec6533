"""What the image holds, without a container engine: built out of Debian's packages, its default
command schedules as user 65532, on a root that cannot be written and has no shell."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.conftest import PATIENCE_SECONDS, SYSTEM, Placed, Run
from tests.real.deployed import template_of

from image_root import build
from realparts.control_plane import ControlPlane
from realparts.process import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [pytest.mark.real("control_plane"), pytest.mark.long]


def test_the_default_command_schedules(
    empty_plane: ControlPlane,
    apply: Callable[[Path], None],
    run_pod: Run,
    placed: Placed,
    tmp_path: Path,
) -> None:
    if shutil.which("apt-get") is None and os.environ.get("CI") != "true":
        pytest.skip("the image's content is made of Debian's packages, and apt-get is not here")
    root = tmp_path / "root"
    build(root)
    assert [*root.rglob("sh"), *root.rglob("bash"), *root.rglob("dash")] == []
    apply(ROOT / "deploy" / "rendered" / "scheduler.yaml")
    spec = template_of(empty_plane, SYSTEM, "lowtide-scheduler")
    (container,) = spec["containers"]
    assert container["args"][0] in default_command()  # the other one is not of the image
    container["command"] = default_command()
    del container["args"]
    scheduler = run_pod(spec, root=root)
    assert placed(ROOT / "examples" / "11-deployments" / "second-scheduler.yaml", 5) == {"lowtide"}
    process = scheduler.processes["scheduler"]
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert "Uid:\t65532\t65532\t65532\t65532\n" in status
    wait_until(
        lambda: "Successfully acquired lease" in scheduler.logs(),
        timeout_seconds=PATIENCE_SECONDS,
        what="it leads",
    )


def default_command() -> list[str]:
    (line,) = [
        line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")
    ]
    words: list[str] = json.loads(line.removeprefix("CMD "))
    return words
