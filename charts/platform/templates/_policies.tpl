{{/* The pods of a service, of the migrations ("migrate"), or of the test ("test"). */}}
{{- define "platform.pods" -}}
{{- if has .name (list "migrate" "test") -}}
app.kubernetes.io/component: {{ .name }}
{{- else -}}
app.kubernetes.io/name: {{ .name }}
{{- end }}
app.kubernetes.io/instance: {{ toYaml .release }}
{{- end }}

{{/* The allowed connections as a JSON list of {from, to}: those that files/services.yaml implies, and additional edges. */}}
{{- define "platform.edges" -}}
{{- $edges := list -}}
{{- $services := include "platform.services" . | fromJson -}}
{{- range $name, $s := $services -}}
{{- if .public -}}
{{- $edges = append $edges (dict "from" "ingress" "to" $name) -}}
{{- $edges = append $edges (dict "from" "test" "to" $name) -}}
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
{{- range $from := ternary (keys $services | sortAlpha) (list $edge.from) (eq $edge.from "services") -}}
{{- range $edge.to -}}
{{- $edges = append $edges (dict "from" $from "to" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $edges | toJson -}}
{{- end }}

{{/* The rules of the pods of a service, of the migrations or of the test: root, name. */}}
{{- define "platform.policy" -}}
{{- $networks := .root.Values.networks -}}
{{- $release := include "platform.release" .root -}}
{{- $services := include "platform.services" .root | fromJson -}}
{{- $s := index $services .name -}}
{{- $name := .name -}}
{{- $edges := include "platform.edges" .root | fromJsonArray -}}
podSelector:
  matchLabels: {{- include "platform.pods" (dict "name" $name "release" $release) | nindent 4 }}
policyTypes: [Ingress, Egress]
{{- if $s }}
ingress:
  {{- range $edge := $edges }}
  {{- if eq $edge.to $name }}
  - from:
      {{- if hasKey $networks $edge.from }}
      {{- toYaml (index $networks $edge.from).peers | nindent 6 }}
      {{- else }}
      - podSelector: { matchLabels: {{ include "platform.pods" (dict "name" $edge.from "release" $release) | fromYaml | toJson }} }
      {{- end }}
    ports: [{ port: {{ $s.port }} }]
  {{- end }}
  {{- end }}
  {{- with $networks.prometheus.peers }}
  - from: {{- toYaml . | nindent 6 }}
    ports: [{ port: {{ $s.metricsPort }} }]
  {{- end }}
{{- end }}
egress:
  - to: {{- toYaml $networks.dns.peers | nindent 6 }}
    ports: {{- toYaml $networks.dns.ports | nindent 6 }}
  {{- range $edge := $edges }}
  {{- if eq $edge.from $name }}
  {{- if hasKey $networks $edge.to }}
  - to: {{- toYaml (index $networks $edge.to).peers | nindent 6 }}
    ports: {{- toYaml (index $networks $edge.to).ports | nindent 6 }}
  {{- else }}
  - to: [{ podSelector: { matchLabels: {{ include "platform.pods" (dict "name" $edge.to "release" $release) | fromYaml | toJson }} } }]
    ports: [{ port: {{ (index $services $edge.to).port }} }]
  {{- end }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* The rules of pods that are one of networks: root, name. */}}
{{- define "platform.guard" -}}
{{- $network := index .root.Values.networks .name -}}
{{- $name := .name -}}
{{- $release := include "platform.release" .root -}}
podSelector: {{- toYaml (first $network.peers).podSelector | nindent 2 }}
policyTypes: [Ingress, Egress]
ingress:
  {{- range $edge := include "platform.edges" .root | fromJsonArray }}
  {{- if eq $edge.to $name }}
  - from: [{ podSelector: { matchLabels: {{ include "platform.pods" (dict "name" $edge.from "release" $release) | fromYaml | toJson }} } }]
    ports: {{- toYaml $network.ports | nindent 6 }}
  {{- end }}
  {{- end }}
{{- end }}
