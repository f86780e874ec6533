"""Makes scenarios of a scheduling queue: pods come, are taken, rejected, fail, wake and go, at
stated times.

Called by __main__. The same seed makes the same scenarios. Nothing happens at the same moment
twice, and nothing happens between a pop and what becomes of that pod."""

import random
from typing import Any

Json = dict[str, Any]

PRIORITIES = (0, 0, 0, 10, 10, 1000)
# With what can happen to wake pods: these plugins say so for every such event on these objects.
PLUGINS = (["NodeResourcesFit"], ["TaintToleration"], ["NodeResourcesFit", "TaintToleration"])
BEGIN_WITH_PODS = 5
ROOMY = {
    "cpu": "64",
    "memory": "256Gi",
    "pods": "110",
    "ephemeral-storage": "1Ti",
}
PAUSES_SECONDS = (0.001, 0.01, 0.2, 0.2, 0.7, 0.7, 1.3, 2.5, 6.0)
LONG_PAUSE_SECONDS = 345.0  # longer than a rejected pod waits, and the look for those that do


def make_queues(*, seed: int, cases: int, steps: int) -> list[Json]:
    return [
        {
            "id": f"queue-{seed}-{number:03}",
            "family": "recorded_queue",
            "scenario": {"steps": _Story(random.Random(f"{seed}/{number}")).tell(steps)},
        }
        for number in range(cases)
    ]


class _Story:
    """Who is taken by a pop is not known here, so what becomes of that pod stands in the step."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now_seconds = 0.0
        self._steps: list[Json] = []
        self._pods: dict[str, Json] = {}  # by namespace/name, until deleted
        self._added = 0

    def tell(self, count: int) -> list[Json]:
        for _ in range(BEGIN_WITH_PODS):
            self._add()
        while len(self._steps) < count:
            action = self._chance.choices(
                (self._add, self._take, self._ungate, self._delete, self._node, self._gone),
                weights=(12, 20, 3, 2, 4, 3),
            )[0]
            action()
        return self._steps

    def _step(self, do: str, **more: Any) -> None:
        is_long = self._chance.random() < 0.02
        pause = LONG_PAUSE_SECONDS if is_long else self._chance.choice(PAUSES_SECONDS)
        self._now_seconds = round(self._now_seconds + pause, 3)
        self._steps.append({"at": self._now_seconds, "do": do, **more})

    def _add(self) -> None:
        name = f"pod-{self._added:02}"
        self._added += 1
        spec: Json = {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "schedulerName": "default-scheduler",
            "priority": self._chance.choice(PRIORITIES),
        }
        if self._chance.random() < 0.2:
            spec["schedulingGates"] = [{"name": "example.com/later"}]
        metadata = {"name": name, "namespace": "shop", "uid": name}
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        self._pods[f"shop/{name}"] = pod
        self._step("add", pod=pod)

    def _take(self) -> None:
        kind = self._chance.random()
        if kind < 0.5:
            self._step("pop", then="refuse", plugins=self._chance.choice(PLUGINS))
        elif kind < 0.65:
            self._step("pop", then="fail")
        else:
            self._step("pop", then="bind")

    def _ungate(self) -> None:
        gated = [name for name, pod in self._pods.items() if "schedulingGates" in pod["spec"]]
        if not gated:
            return
        name = self._chance.choice(gated)
        before = self._pods[name]
        spec = {key: value for key, value in before["spec"].items() if key != "schedulingGates"}
        self._pods[name] = before | {"spec": spec}
        self._step("update", pod=self._pods[name])

    def _delete(self) -> None:
        if self._pods:
            name = self._chance.choice(sorted(self._pods))
            del self._pods[name]
            self._step("delete", name=name)

    def _node(self) -> None:
        node = {
            "metadata": {"name": "node-new"},
            "spec": {},
            "status": {"capacity": ROOMY, "allocatable": ROOMY},
        }
        self._step("nodeAdded", node=node)

    def _gone(self) -> None:
        metadata = {"name": "gone", "namespace": "shop", "uid": "gone"}
        spec = {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}],
            "nodeName": "node-1",
            "priority": 0,
        }
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
        self._step("podDeleted", pod=pod)
