{{- define "lowtide.config" -}}
{{- if .Values.config }}
{{- toYaml .Values.config }}
{{- else if eq .Values.mode "scheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  resourceName: {{ include "lowtide.lease" . }}
profiles:
- schedulerName: {{ include "lowtide.schedulerName" . }}
  plugins:
    score:
      enabled:
      - name: NetworkTraffic
        weight: 9
  pluginConfig:
  - name: NetworkTraffic
    args:
      prometheusAddress: {{ .Values.prometheusAddress }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {{ include "lowtide.schedulerName" . }}
  plugins:
    multiPoint:
      disabled:
      - name: "*"
      enabled:
      - name: PrioritySort
      - name: DefaultBinder
      - name: NetworkTraffic
        weight: 9
  pluginConfig:
  - name: NetworkTraffic
    args:
      prometheusAddress: {{ .Values.prometheusAddress }}
{{- end }}
{{- end }}

{{- define "lowtide.kubeSchedulerConfig" -}}
{{- if .Values.kubeScheduler.config }}
{{- toYaml .Values.kubeScheduler.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  resourceName: {{ include "lowtide.lease" . }}
percentageOfNodesToScore: 100
profiles:
- schedulerName: {{ include "lowtide.schedulerName" . }}
extenders:
- urlPrefix: https://127.0.0.1:8001/scheduler
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 9
  nodeCacheCapable: true
  ignorable: true
  httpTimeout: 2s
  enableHTTPS: true    # with a certificate of its own
{{- end }}
{{- end }}
