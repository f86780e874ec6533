from lowtide.localcluster import Store


def test_creation_fills_in_what_a_scheduler_relies_on(store: Store) -> None:
    container = {
        "name": "c",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
    }
    item = {"metadata": {"name": "p"}, "spec": {"containers": [container], "hostNetwork": True}}
    created = store.create("pods", {**item, "status": {"phase": "Running"}})
    assert created["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert created["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.27",
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "hostNetwork": True,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
