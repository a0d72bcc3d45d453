{{/* How fast the autoscaler may add and remove pods. */}}
{{- define "platform.behavior" -}}
{{- $behavior := dict "scaleDown" (dict "stabilizationWindowSeconds" .autoscaling.scaleDownSeconds) -}}
{{- include "platform.override" (list $behavior .autoscaling.behavior) -}}
{{- toYaml $behavior -}}
{{- end }}

{{/* What KEDA scales a service by: CPU, memory, the lag of each topic that it reads, and the triggers of the values. */}}
{{- define "platform.triggers" -}}
{{- $s := . -}}
{{- $keda := .autoscaling.keda -}}
{{- $triggers := list -}}
{{- range $resource, $percent := dict "cpu" .autoscaling.cpuPercent "memory" .autoscaling.memoryPercent -}}
{{- if $percent -}}
{{- $triggers = append $triggers (dict "type" $resource "metricType" "Utilization" "metadata" (dict "value" (toString $percent) "containerName" $s.name)) -}}
{{- end -}}
{{- end -}}
{{- $prefix := .env.KAFKA_TOPIC_PREFIX | default "" -}}
{{- $topics := $keda.topics -}}
{{- if not $topics -}}
{{- range .reads -}}
{{- $topics = append $topics (print $prefix .) -}}
{{- end -}}
{{- end -}}
{{- $kafka := dict "bootstrapServers" ($keda.bootstrapServers | default .env.KAFKA_BROKERS) "consumerGroup" ($keda.consumerGroup | default (print $prefix .name)) "lagThreshold" $keda.lagThreshold -}}
{{- if eq (.env.KAFKA_TLS | default "false") "true" -}}
{{- $_ := set $kafka "tls" "enable" -}}
{{- end -}}
{{- with get (dict "plain" "plaintext" "scram-sha-256" "scram_sha256" "scram-sha-512" "scram_sha512") (.env.KAFKA_SASL_MECHANISM | default "") -}}
{{- $_ := set $kafka "sasl" . -}}
{{- if and $topics (not $keda.authenticationRef.name) -}}
{{- fail (printf "services.%s.autoscaling.keda.authenticationRef.name must name a TriggerAuthentication with username and password where KAFKA_SASL_MECHANISM is set" $s.name) -}}
{{- end -}}
{{- end -}}
{{- range $topics -}}
{{- $trigger := dict "type" "kafka" "metadata" (merge (dict "topic" .) $kafka) -}}
{{- if $keda.authenticationRef.name -}}
{{- $_ := set $trigger "authenticationRef" $keda.authenticationRef -}}
{{- end -}}
{{- $triggers = append $triggers $trigger -}}
{{- end -}}
{{- $triggers = concat $triggers $keda.triggers -}}
{{- if not $triggers -}}
{{- fail (printf "services.%s.autoscaling.keda: %s reads no topic and there is no other trigger; set cpuPercent, memoryPercent, topics or triggers" .name .name) -}}
{{- end -}}
{{- toYaml $triggers -}}
{{- end }}
