"""Nodes and pods that come and go at a steady pace, with as many of them there all the time."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from queue import Queue

from realparts.api_client import ApiClient, ApiError
from soak.objects import (
    NODES,
    PODS,
    Object,
    make_node,
    make_pod,
    node_name,
    number_of,
    pod_name,
)

CONNECTIONS = 4
SEED = 7
# Of so many turns one is a node's: it comes, or it goes with the pods that are on it.
TURNS_OF_A_NODE = 25
DELETE_NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
NOT_FOUND = 404

Change = Callable[[ApiClient], None]


class Churn:
    """Changes are decided by one thread, and made by several; `stop` waits until all are made."""

    def __init__(
        self, make_client: Callable[[], ApiClient], *, nodes: int, pods: int, per_second: float
    ) -> None:
        self.nodes = dict.fromkeys(range(nodes))  # in the order in which they came
        self.most_nodes = nodes
        self.changes = 0
        self.counts: Counter[str] = Counter()
        self._pods: list[int] = []
        self._gone: set[int] = set()  # of those, with their node
        self._most_pods = pods
        self._next_node, self._next_pod = nodes, 0
        self._per_second = per_second
        self._chance = random.Random(SEED)
        self._clients = [make_client() for _ in range(CONNECTIONS)]
        self._waiting: Queue[Change | None] = Queue(maxsize=CONNECTIONS)
        self._failure: Exception | None = None
        self._is_over = threading.Event()
        self._counting = threading.Lock()  # of what several threads change
        self._threads = [
            threading.Thread(target=self._make_changes, args=(each,), daemon=True)
            for each in self._clients
        ]
        self._deciding = threading.Thread(target=self._decide, daemon=True)

    def fill(self) -> None:
        """All nodes, then all pods, as fast as the API server takes them."""
        for thread in self._threads:
            thread.start()
        for number in self.nodes:
            self._waiting.put(self._posting(NODES, make_node(number), "nodes_came"))
        self._waiting.join()
        for _ in range(self._most_pods):
            self._waiting.put(self._pod_comes())
        self._waiting.join()
        self.check()

    def start(self) -> None:
        self.changes = 0
        self.counts.clear()
        self._deciding.start()

    def check(self) -> None:
        """Raises what ended it before it was stopped."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._is_over.set()
        if self._deciding.is_alive():
            self._deciding.join()
        started = [thread for thread in self._threads if thread.is_alive()]
        for _ in started:
            self._waiting.put(None)
        for thread in started:
            thread.join()
        for client in self._clients:
            client.close()

    def _decide(self) -> None:
        began_at = time.monotonic()
        turn = 0
        while not self._is_over.is_set() and self._failure is None:
            self._waiting.put(self._change_of(turn))
            turn += 1
            # A node that goes takes many changes at once; the pace is that of all changes.
            due = began_at + self.changes / self._per_second
            self._is_over.wait(max(0.0, due - time.monotonic()))

    def _change_of(self, turn: int) -> Change:
        if turn % TURNS_OF_A_NODE == 0:
            is_short = len(self.nodes) < self.most_nodes
            return self._node_comes() if is_short else self._node_goes()
        with self._counting:
            is_short = len(self._pods) - len(self._gone) < self._most_pods
        return self._pod_comes() if is_short else self._pod_goes()

    def _node_comes(self) -> Change:
        number = self._next_node
        self._next_node += 1
        self.nodes[number] = None
        return self._posting(NODES, make_node(number), "nodes_came")

    def _node_goes(self) -> Change:
        """The oldest, and after it its pods, as the controllers have it."""
        number = next(iter(self.nodes))
        del self.nodes[number]
        name = node_name(number)

        def delete(client: ApiClient) -> None:
            self._delete(client, f"{NODES}/{name}", "nodes_gone")
            on_node = client.request("GET", f"{PODS}?fieldSelector=spec.nodeName%3D{name}")
            names = [pod["metadata"]["name"] for pod in on_node["items"]]
            with self._counting:
                self._gone.update(set(map(number_of, names)).intersection(self._pods))
            for each in names:
                self._delete(client, f"{PODS}/{each}", "pods_gone")

        return delete

    def _pod_comes(self) -> Change:
        number = self._next_pod
        self._next_pod += 1
        with self._counting:
            self._pods.append(number)
        return self._posting(PODS, make_pod(number), "pods_came")

    def _pod_goes(self) -> Change:
        """Any that did not go with its node already."""
        with self._counting:
            number = self._drawn()
            while number in self._gone:
                self._gone.remove(number)
                number = self._drawn()
        path = f"{PODS}/{pod_name(number)}"
        return lambda client: self._delete(client, path, "pods_gone")

    def _drawn(self) -> int:
        index = self._chance.randrange(len(self._pods))
        self._pods[index], self._pods[-1] = self._pods[-1], self._pods[index]
        return self._pods.pop()

    def _posting(self, path: str, body: Object, what: str) -> Change:
        def post(client: ApiClient) -> None:
            client.request("POST", path, body)
            self._count(what)

        return post

    def _delete(self, client: ApiClient, path: str, what: str) -> None:
        try:
            client.request("DELETE", path, DELETE_NOW)
        except ApiError as rejection:
            if rejection.status != NOT_FOUND:
                raise
        else:
            self._count(what)

    def _count(self, what: str) -> None:
        with self._counting:
            self.counts[what] += 1
            self.changes += 1

    def _make_changes(self, client: ApiClient) -> None:
        while (change := self._waiting.get()) is not None:
            try:
                if self._failure is None:
                    change(client)
            except (ApiError, OSError) as failure:
                self._failure = failure
            finally:
                self._waiting.task_done()
        self._waiting.task_done()
