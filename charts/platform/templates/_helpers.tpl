{{- define "platform.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The pods of a service, or of the migrations. */}}
{{- define "platform.pods" -}}
{{- if eq .name "migrate" -}}
app.kubernetes.io/component: migrate
{{- else -}}
app.kubernetes.io/name: {{ .name }}
{{- end }}
app.kubernetes.io/instance: {{ .release }}
{{- end }}

{{/* The allowed connections as a JSON list of {from, to}: those that files/services.yaml implies, and additional edges. */}}
{{- define "platform.edges" -}}
{{- $edges := list -}}
{{- range $name, $s := include "platform.services" . | fromJson -}}
{{- if .public -}}
{{- $edges = append $edges (dict "from" "ingress" "to" $name) -}}
{{- end -}}
{{- $to := .calls | default list -}}
{{- if .database -}}
{{- $to = append $to "postgres" -}}
{{- $edges = append $edges (dict "from" "migrate" "to" "postgres") -}}
{{- end -}}
{{- if .redis -}}
{{- $to = append $to "redis" -}}
{{- end -}}
{{- if or .topics .reads -}}
{{- $to = append $to "kafka" -}}
{{- end -}}
{{- if and .database (or .topics .reads) -}}
{{- $edges = append $edges (dict "from" "migrate" "to" "kafka") -}}
{{- end -}}
{{- range concat $to (.reaches | default list) -}}
{{- $edges = append $edges (dict "from" $name "to" .) -}}
{{- end -}}
{{- end -}}
{{- range $edge := .Values.edges -}}
{{- range .to -}}
{{- $edges = append $edges (dict "from" $edge.from "to" .) -}}
{{- end -}}
{{- end -}}
{{- uniq $edges | toJson -}}
{{- end }}

{{/* Fails with an error on one line for an edge with an unknown end, and for other invalid values. */}}
{{- define "platform.check" -}}
{{- if .Values.defaults.image.digest -}}
{{- fail "defaults.image.digest: a digest identifies a single image; set services.<name>.image.digest instead" -}}
{{- end -}}
{{- $known := append (keys (include "platform.services" . | fromJson)) "migrate" -}}
{{- range $edge := include "platform.edges" . | fromJsonArray -}}
{{- range $name := list .from .to -}}
{{- if not (or (has $name $known) (hasKey $.Values.networks $name)) -}}
{{- fail (printf "edges: %q is neither a service nor one of networks" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := .Values.networkPolicies.guarded -}}
{{- $network := index $.Values.networks $name | default dict -}}
{{- if ne (len ($network.peers | default list)) 1 -}}
{{- fail (printf "networkPolicies.guarded: %q is no network with one peer" $name) -}}
{{- end -}}
{{- if not (first $network.peers).podSelector -}}
{{- fail (printf "networkPolicies.guarded: %q is no network of pods" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}
