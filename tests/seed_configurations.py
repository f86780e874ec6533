"""The configurations that the articles print from which the project started, word for word; the
fourth article prints the second's, whose indentation it has lost."""

MINUTES_BY_NODENAME = """\
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata:
  name:  networtraffic-clusterrolebinding
  namespace: kube-system
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: networktraffic-scheduler-config
  namespace: kube-system
data:
  scheduler-config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    leaderElection:
      leaderElect: false
    profiles:
      - schedulerName: networktraffic-scheduler
        plugins:
          score:
            enabled:
              - name: network_traffic
        pluginConfig:
          - name: "NetworkTraffic"
            args:
              ip: "prometheus.kube-system:9090"
              deviceName: "eth0"
              timeRange: 60
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: networktraffic-scheduler
"""

V1BETA1_BY_KUBERNETES_NODE = """\
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: "/etc/kubernetes/scheduler.conf"
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      enabled:
      - name: NetworkTraffic
      disabled:
      - name: "*"
  pluginConfig:
  - name: NetworkTraffic
    args:
      prometheusAddress: "http://prometheus-1616380099-server.monitor"
      networkInterface: "ens192"
      timeRangeInMinutes: 3
"""

SECONDS_BY_INSTANCE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: scheduler-config
  namespace: kube-system
data:
  scheduler-config.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    leaderElection:
      leaderElect: false
    profiles:
      - schedulerName: sample-scheduler
        plugins:
          score:
            enabled:
              - name: "NetworkTraffic"
            disabled:
              - name: "*"
        pluginConfig:
          - name: "NetworkTraffic"
            args:
              ip: "http://10.181.229.225:30278" #替换为集群的prometheus serviceIP
              deviceName: "wlan0" #需要监测的网络类型
              timeRange: 15 #监测数据的时间段（单位:s）
"""

ADDRESSES = {
    MINUTES_BY_NODENAME: "prometheus.kube-system:9090",
    V1BETA1_BY_KUBERNETES_NODE: "http://prometheus-1616380099-server.monitor",
    SECONDS_BY_INSTANCE: "http://10.181.229.225:30278",
}
QUERIES = {
    MINUTES_BY_NODENAME: 'sum_over_time(node_network_receive_bytes_total{device="eth0"}[1h])',
    V1BETA1_BY_KUBERNETES_NODE: (
        'sum_over_time(node_network_receive_bytes_total{device="ens192"}[3m])'
    ),
    SECONDS_BY_INSTANCE: 'sum_over_time(node_network_receive_bytes_total{device="wlan0"}[15s])',
}
