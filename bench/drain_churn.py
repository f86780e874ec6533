"""Nodes and pods that come and go while a drain is measured; run by drain as a process of its own.

After scheduler_perf's churn: a node, a pod that fits nowhere, and a pod that ran on a node, each
created and deleted again, at a steady pace."""

import argparse
import itertools
import time

from drain_posting import Server, send_all
from workloads import CHURNED, CHURNING, Object, make_node, make_pod, node_name, requests

# Three objects come and the three before them go each time, so that there are 30 changes a second.
EVERY_SECONDS = 0.2
CHURNED_NODE = 90_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca-file", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    server = Server(options.url, options.ca_file, options.token)
    due = time.monotonic()
    for number in itertools.count():
        coming = [server.request("POST", path, each) for path, each in _objects(number)]
        going = (
            [
                server.request("DELETE", f"{path}/{each['metadata']['name']}", {})
                for path, each in _objects(number - 1)
            ]
            if number
            else []
        )
        send_all(server, coming + going, at_once=1)
        due += EVERY_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))


def _objects(number: int) -> list[tuple[str, Object]]:
    pods = f"/api/v1/namespaces/{CHURNING}/pods"
    ran = requests("100m", "500Mi") | {"nodeName": node_name(number % 100)}
    node = make_node(CHURNED_NODE + number % 1000)
    node["metadata"]["labels"][CHURNED] = "true"
    return [
        ("/api/v1/nodes", node),
        (pods, make_pod(f"large-{number}", CHURNING, requests("64", "500Mi"))),
        (pods, make_pod(f"ran-{number}", CHURNING, ran)),
    ]


if __name__ == "__main__":
    main()
