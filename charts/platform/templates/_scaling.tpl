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

{{/* Fails if the limits of the autoscaler contradict each other, or if the disruption budget lets no node drain. */}}
{{- define "platform.checkScaling" -}}
{{- $scaled := or .autoscaling.enabled .autoscaling.keda.enabled -}}
{{- if and $scaled (gt (int64 .autoscaling.minReplicas) (int64 .autoscaling.maxReplicas)) -}}
{{- fail (printf "services.%s.autoscaling: minReplicas is %d, above maxReplicas, which is %d" .name (int64 .autoscaling.minReplicas) (int64 .autoscaling.maxReplicas)) -}}
{{- end -}}
{{- $pods := int64 (ternary .autoscaling.minReplicas .replicas $scaled) -}}
{{- if and .pdb.enabled (gt $pods 0) -}}
{{- $required := int64 0 -}}
{{- if kindIs "string" .pdb.minAvailable -}}
{{- $required = div (add (mul $pods (trimSuffix "%" .pdb.minAvailable | int64)) 99) 100 -}}
{{- else -}}
{{- $required = int64 .pdb.minAvailable -}}
{{- end -}}
{{- if ge $required $pods -}}
{{- fail (printf "services.%s.pdb.minAvailable: %v requires all of the %d pods, so that no node can be drained; lower it or set more replicas" .name .pdb.minAvailable $pods) -}}
{{- end -}}
{{- if and (not .pdb.minAvailable) (regexMatch "^0+%$" (toString .pdb.maxUnavailable)) -}}
{{- fail (printf "services.%s.pdb.maxUnavailable: %v lets no pod go, so that no node can be drained" .name .pdb.maxUnavailable) -}}
{{- end -}}
{{- end -}}
{{- end }}
