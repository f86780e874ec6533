{{- /* scheduler or extender */ -}}
{{- define "lowtide.component" -}}
{{ .Values.mode | trimSuffix "-standalone" }}
{{- end }}

{{- define "lowtide.name" -}}
{{ printf "%s-%s" .Release.Name (include "lowtide.component" .) | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- /* All of them are selected by: a PodDisruptionBudget that also found pods of another release would
keep these from being evicted. */ -}}
{{- define "lowtide.labels" -}}
app.kubernetes.io/name: lowtide
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: {{ include "lowtide.component" . }}
{{- end }}

{{- define "lowtide.schedulerName" -}}
{{ .Values.schedulerName | default (eq .Values.mode "scheduler" | ternary "lowtide" "lowtide-extender") }}
{{- end }}

{{- /* Of all profiles by which pods are placed, with a space between them. */ -}}
{{- define "lowtide.schedulerNames" -}}
{{- $config := eq .Values.mode "extender" | ternary .Values.kubeScheduler.config .Values.config }}
{{- $names := list }}
{{- range $config.profiles | default (list dict) }}
{{- $names = append $names (.schedulerName | default "default-scheduler") }}
{{- end }}
{{- empty $config | ternary (include "lowtide.schedulerName" .) (join " " $names) }}
{{- end }}

{{- define "lowtide.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The lease of who schedules: as the configuration says; else Lowtide's is called after its first
profile, and kube-scheduler's always the same. */ -}}
{{- define "lowtide.lease" -}}
{{- $config := eq .Values.mode "scheduler" | ternary .Values.config .Values.kubeScheduler.config }}
{{- $names := include "lowtide.schedulerNames" . | splitList " " }}
{{- $isUsual := or (has "default-scheduler" $names) (and (eq .Values.mode "extender") (not (empty $config))) }}
{{- dig "leaderElection" "resourceName" "" $config | default ($isUsual | ternary "kube-scheduler" (first $names)) }}
{{- end }}

{{- define "lowtide.leaseNamespace" -}}
{{- $config := eq .Values.mode "scheduler" | ternary .Values.config .Values.kubeScheduler.config }}
{{- dig "leaderElection" "resourceNamespace" "" $config | default "kube-system" }}
{{- end }}
