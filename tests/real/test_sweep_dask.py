"""A sweep on a real Dask cluster, one worker of which is killed on the way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_simulate import SMALL
from tests.conftest import LOWTIDE

from realparts.process import Process, free_port, wait_until

DASK = Path(sys.executable).parent / "dask"
CONFIGS = 4
SEEDS = 10


@pytest.mark.long
def test_a_lost_worker_costs_its_own_runs_and_nothing_else(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SMALL.replace("pods: 8", "pods: 200").replace("count: 4", "count: 40"))
    words = [LOWTIDE, "sweep", scenario, f"--seeds=1-{SEEDS}", "--output=json"]
    for number in range(CONFIGS):
        file = tmp_path / f"{number}.yaml"
        score = {"enabled": [{"name": "NetworkTraffic", "weight": 2 * number + 1}]}
        profile = {"schedulerName": "mine", "plugins": {"score": score}}
        config = {"kind": "KubeSchedulerConfiguration", "profiles": [profile]}
        version = "kubescheduler.config.k8s.io/v1"
        file.write_text(json.dumps({"apiVersion": version, **config}))
        words.append(f"--config={file}")
    local = subprocess.run(words, capture_output=True, text=True, timeout=200, check=True)
    assert len(json.loads(local.stdout)["runs"]) == CONFIGS * SEEDS

    address = f"tcp://127.0.0.1:{free_port()}"
    served = ["--host=127.0.0.1", f"--port={address.rpartition(':')[2]}", "--no-dashboard"]
    scheduler = Process("dask-scheduler", [DASK, "scheduler", *served], folder=tmp_path)
    worked = [address, "--host=127.0.0.1", "--nthreads=1", "--no-nanny", "--no-dashboard"]
    workers = [
        Process(f"dask-worker-{number}", [DASK, "worker", *worked], folder=tmp_path)
        for number in range(2)
    ]
    swept = Process("sweep", [*words, f"--dask={address}"], folder=tmp_path)
    try:
        scheduler.start()
        for worker in workers:
            worker.start()
        wait_until(
            lambda: all("Registered to" in worker.log() for worker in workers),
            timeout_seconds=60,
            what="both workers are there",
        )
        swept.start()
        before = [worker.cpu_seconds() for worker in workers]
        wait_until(
            lambda: workers[0].cpu_seconds() > before[0] + 1.0,
            timeout_seconds=60,
            what="the first worker works",
        )
        workers[0].kill()
        assert swept.is_running()
        wait_until(lambda: not swept.is_running(), timeout_seconds=200, what="the sweep ends")
        assert swept.exit_code == 0, swept.log()
    finally:
        for process in (swept, *workers, scheduler):
            if process.is_running():
                process.stop()
    lines = swept.log().splitlines()
    assert json.loads(next(line for line in lines if line.startswith("{"))) == json.loads(
        local.stdout
    )
