{{- define "platform.services" -}}
gateway,identity,customers,bookings,webhooks
{{- end }}

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

{{/* An error in one line for an edge that leads nowhere. */}}
{{- define "platform.check" -}}
{{- $known := append (splitList "," (include "platform.services" .)) "migrate" -}}
{{- range $edge := .Values.edges -}}
{{- range $name := prepend $edge.to $edge.from -}}
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
