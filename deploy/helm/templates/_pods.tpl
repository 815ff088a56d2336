{{- /* The secrets of a component: each setting, with the key of the Secret that has its value. */}}
{{- define "serpmill.secrets" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
DATABASE_URL: DATABASE_URL
{{- if eq $component "migrate" }}
MIGRATION_DATABASE_URL: MIGRATION_DATABASE_URL
{{- else }}
REDIS_URL: REDIS_URL_{{ upper $component }}
{{- if $root.Values.secrets.sentinelPassword }}
SENTINEL_PASSWORD: SENTINEL_PASSWORD
{{- end }}
{{- if $root.Values.secrets.collectorHeaders }}
OTEL_EXPORTER_OTLP_HEADERS: OTEL_EXPORTER_OTLP_HEADERS
{{- end }}
{{- end }}
{{- if and (eq $component "api") $root.Values.payments }}
STRIPE_SECRET_KEY: STRIPE_SECRET_KEY
STRIPE_WEBHOOK_SECRET: STRIPE_WEBHOOK_SECRET
{{- end }}
{{- if eq $component "worker" }}
{{- $providers := $root.Values.settings.SERP_PROVIDERS | nospace | splitList "," }}
{{- if has "serpapi" $providers }}
SERPAPI_API_KEY: SERPAPI_API_KEY
{{- end }}
{{- if has "searchapi" $providers }}
SEARCHAPI_API_KEY: SEARCHAPI_API_KEY
{{- end }}
{{- if has "serper" $providers }}
SERPER_API_KEY: SERPER_API_KEY
{{- end }}
{{- if has "dataforseo" $providers }}
DATAFORSEO_LOGIN: DATAFORSEO_LOGIN
DATAFORSEO_PASSWORD: DATAFORSEO_PASSWORD
{{- end }}
{{- end }}
{{- end }}

{{- define "serpmill.deadlineSeconds" -}}
{{ divf (.Values.settings.SEARCH_DEADLINE_MS | default 30000) 1000 | ceil | int }}
{{- end }}

{{- /* How long a process may take to stop: docs/operating/shutdown.md. */}}
{{- define "serpmill.stopSeconds" -}}
{{ max 50 (add 20 (include "serpmill.deadlineSeconds" . | int)) }}
{{- end }}

{{- /* The API or the workers. Called with (list ROOT COMPONENT PORTS), the ports by name. */}}
{{- define "serpmill.process" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $ports := index . 2 -}}
{{- $values := index $root.Values $component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "serpmill.metadata" . | nindent 2 }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
  selector:
    matchLabels:
      {{- include "serpmill.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "serpmill.selector" . | nindent 8 }}
      {{- with $root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "serpmill.pod" . | nindent 6 }}
      {{- include "serpmill.podSecurity" 10001 | nindent 6 }}
      {{- include "serpmill.spread" . | nindent 6 }}
      terminationGracePeriodSeconds: {{ add ($values.preStopSeconds | default 0) (include "serpmill.stopSeconds" $root | int) }}
      containers:
        - name: {{ $component }}
          {{- include "serpmill.program" . | nindent 10 }}
          command: [node, {{ $component }}/main.ts]
          ports:
            {{- range $name, $port := $ports }}
            - { name: {{ $name }}, containerPort: {{ $port }} }
            {{- end }}
          {{- include "serpmill.probes" $root | nindent 10 }}
          # An API serves until the proxies have found its successor in the cluster's DNS, which may cache for 30 s. A worker needs
          # no preStop: it fetches its searches, and tells the APIs that it leaves.
          {{- with $values.preStopSeconds }}
          lifecycle: { preStop: { sleep: { seconds: {{ . }} } } }
          {{- end }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
      {{- include "serpmill.volumes" . | nindent 6 }}
---
# For Prometheus, and for the proxy, which probes each API itself. It has the addresses of pods that are not ready too: their
# answers say what is missing.
apiVersion: v1
kind: Service
metadata:
  {{- include "serpmill.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "serpmill.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := $ports }}
    - { name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }} }
    {{- end }}
---
{{ include "serpmill.budget" . }}
{{- end }}

{{- /* What every pod has. */}}
{{- define "serpmill.pod" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "serpmill.spread" -}}
{{- $root := index . 0 -}}
{{- $arguments := . -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: {{ $root.Values.topologySpread }}
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "serpmill.selector" $arguments | nindent 8 }}
{{- end }}
{{- end }}

{{- define "serpmill.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "serpmill.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "serpmill.selector" . | nindent 6 }}
{{- end }}

{{- /* As docker compose hardens its containers, in the words of the Pod Security Standard `restricted`. */}}
{{- define "serpmill.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  fsGroup: {{ . }}
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "serpmill.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- /* The image, settings and files of a program of Serpmill. */}}
{{- define "serpmill.program" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := $root.Values -}}
{{- $own := dict "api" $values.api.tag "worker" $values.worker.tag -}}
image: {{ printf "%s:%s" $values.image.repository (get $own $component | default $values.image.tag | default $root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
{{ include "serpmill.containerSecurity" $root }}
env:
  {{- range $setting, $key := include "serpmill.secrets" . | fromYaml }}
  - { name: {{ $setting }}_FILE, value: /run/secrets/serpmill/{{ $key }} }
  {{- end }}
  {{- if ne $component "migrate" }}
  - { name: HOST, value: 0.0.0.0 }
  - { name: TRUSTED_PROXIES, value: {{ add 1 $values.proxy.proxiesInFront | toString | quote }} }
  {{- if eq $component "api" }}
  - { name: API_PORT, value: "3000" }
  - { name: API_OPS_PORT, value: "3001" }
  {{- else }}
  - { name: WORKER_OPS_PORT, value: "3002" }
  {{- end }}
  {{- range $name, $value := $values.settings }}
  {{- /* toString would write 0.00005 as 5e-05, and 2000000 as 2e+06. The processes refuse both. */}}
  - { name: {{ $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }} }
  {{- end }}
  {{- end }}
  {{- if $values.ca.existingConfigMap }}
  - { name: NODE_EXTRA_CA_CERTS, value: /etc/serpmill/ca/ca.crt }
  {{- end }}
volumeMounts:
  - { name: secrets, mountPath: /run/secrets/serpmill, readOnly: true }
  - { name: tmp, mountPath: /tmp }
  {{- if $values.ca.existingConfigMap }}
  - { name: ca, mountPath: /etc/serpmill/ca, readOnly: true }
  {{- end }}
{{- end }}

{{- define "serpmill.volumes" -}}
{{- $root := index . 0 -}}
volumes:
  - name: secrets
    secret:
      secretName: {{ $root.Values.secrets.existingSecret | quote }}
      # For the group of the pod alone.
      defaultMode: 0440
      items:
        {{- range $key := include "serpmill.secrets" . | fromYaml | values | sortAlpha }}
        - { key: {{ $key }}, path: {{ $key }} }
        {{- end }}
  - { name: tmp, emptyDir: { medium: Memory, sizeLimit: 64Mi } }
  {{- with $root.Values.ca.existingConfigMap }}
  - { name: ca, configMap: { name: {{ . | quote }}, items: [{ key: {{ $root.Values.ca.key | quote }}, path: ca.crt }] } }
  {{- end }}
{{- end }}

{{- define "serpmill.probes" -}}
# An unreachable Redis is no reason to replace a container, so only /livez decides about its life.
startupProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: ops }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end }}
