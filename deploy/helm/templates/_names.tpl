{{- define "serpmill.name" -}}
{{- if contains "serpmill" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-serpmill" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* What selects the pods of a component. Called with (list ROOT COMPONENT), as most of these. */}}
{{- define "serpmill.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: serpmill
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "serpmill.labels" -}}
{{- $root := index . 0 -}}
{{ include "serpmill.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Every template begins with it, so the values are checked before any is used. */}}
{{- define "serpmill.metadata" -}}
{{- $root := index . 0 -}}
{{- include "serpmill.check" $root -}}
name: {{ include "serpmill.name" $root }}-{{ index . 1 }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- include "serpmill.labels" . | nindent 2 }}
{{- end }}
