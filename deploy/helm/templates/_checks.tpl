{{- /* What the schema cannot say in words. Each message says what is expected. */}}
{{- define "serpmill.check" -}}
{{- $values := .Values -}}
{{- $settings := $values.settings -}}
{{- if not $values.image.repository }}
{{- fail "image.repository: expected the repository of the image that you built, such as registry.example.com/serpmill" }}
{{- end }}
{{- if not $values.secrets.existingSecret }}
{{- fail "secrets.existingSecret: expected the name of a Secret in this namespace with DATABASE_URL, MIGRATION_DATABASE_URL, REDIS_URL_API, REDIS_URL_WORKER and the keys of the providers" }}
{{- end }}
{{- if not $settings.SERP_PROVIDERS }}
{{- fail "settings.SERP_PROVIDERS: expected a comma list of search providers; sandbox makes answers up" }}
{{- end }}
{{- if and $values.payments (not $settings.PUBLIC_URL) }}
{{- fail "settings.PUBLIC_URL: expected the address of the API, because payments is true" }}
{{- end }}
{{- if and $settings.SENTINEL_USERNAME (not $values.secrets.sentinelPassword) }}
{{- fail "secrets.sentinelPassword: expected true, because settings.SENTINEL_USERNAME is set" }}
{{- end }}
{{- if and $settings.OTEL_EXPORTER_OTLP_ENDPOINT $values.networkPolicy.enabled (not $values.networkPolicy.collector) }}
{{- fail "networkPolicy.collector: expected rules of egress to the collector, because settings.OTEL_EXPORTER_OTLP_ENDPOINT is set" }}
{{- end }}
{{- $doors := $settings.COMPAT_DOORS | default "" | nospace | splitList "," }}
{{- range $settings.COMPAT_HOSTS | default "" | nospace | lower | splitList "," | compact }}
{{- if not (has (splitList "=" . | first) $doors) }}
{{- fail "settings.COMPAT_HOSTS: expected only doors that settings.COMPAT_DOORS names" }}
{{- end }}
{{- end }}
{{- if and $values.proxy.service.externalTrafficPolicy (eq $values.proxy.service.type "ClusterIP") }}
{{- fail "proxy.service.type: expected NodePort or LoadBalancer, because proxy.service.externalTrafficPolicy is set" }}
{{- end }}
{{- range $component := list "api" "worker" }}
{{- $autoscaling := (index $values $component).autoscaling }}
{{- if gt (int $autoscaling.minReplicas) (int $autoscaling.maxReplicas) }}
{{- fail (printf "%s.autoscaling.maxReplicas: expected at least minReplicas" $component) }}
{{- end }}
{{- end }}
{{- if $values.worker.autoscaling.enabled }}
{{- if not $values.worker.autoscaling.prometheus }}
{{- fail "worker.autoscaling.prometheus: expected the address of Prometheus, such as http://prometheus-operated.monitoring:9090" }}
{{- end }}
{{- if not $values.monitoring.serviceMonitor }}
{{- fail "monitoring.serviceMonitor: expected true, because worker.autoscaling asks Prometheus for what it collects" }}
{{- end }}
{{- end }}
{{- if and $values.networkPolicy.enabled $values.monitoring.serviceMonitor (not $values.networkPolicy.monitoring) }}
{{- fail "networkPolicy.monitoring: expected the pods of Prometheus as peers of a NetworkPolicy, because monitoring.serviceMonitor is true" }}
{{- end }}
{{- end }}
