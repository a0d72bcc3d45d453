{{/* Fails if a value that reaches an object still contains a placeholder of values-production.yaml or of the examples. */}}
{{- define "platform.checkPlaceholders" -}}
{{- $values := dict "publicUrl" .Values.publicUrl "authUrl" .Values.authUrl -}}
{{- range $name := list "ingress" "httpRoute" "prometheusRule" -}}
{{- $value := index $.Values $name -}}
{{- if $value.enabled -}}
{{- $_ := set $values $name $value -}}
{{- end -}}
{{- end -}}
{{- $blocks := dict "defaults" .Values.defaults -}}
{{- range $name, $s := .Values.services -}}
{{- $_ := set $blocks (printf "services.%s" $name) ($s | default dict) -}}
{{- end -}}
{{- range $block, $s := $blocks -}}
{{- range $field := list "image" "env" "serviceAccount" "external" "podAnnotations" "autoscaling" -}}
{{- $_ := set $values (printf "%s.%s" $block $field) (index $s $field) -}}
{{- end -}}
{{- end -}}
{{- range $path, $value := $values -}}
{{- include "platform.checkPlaceholder" (list $path $value) -}}
{{- end -}}
{{- end }}

{{/* Fails if a text in a value, a list or a map is a placeholder: a word of the files in capitals, or a domain for examples (RFC 2606). */}}
{{- define "platform.checkPlaceholder" -}}
{{- $path := first . -}}
{{- $value := last . -}}
{{- if kindIs "map" $value -}}
{{- range $key, $inner := $value -}}
{{- include "platform.checkPlaceholder" (list (printf "%s.%s" $path $key) $inner) -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- range $i, $inner := $value -}}
{{- include "platform.checkPlaceholder" (list (printf "%s[%d]" $path $i) $inner) -}}
{{- end -}}
{{- else if kindIs "string" $value -}}
{{- $word := "\\b(HOST|API_HOST|LOGIN_HOST|REGISTRY|VERSION|KAFKA|RUNBOOKS|ACCOUNT|REGION|PROJECT|CERTIFICATE)\\b" -}}
{{- $domain := "(^|[^A-Za-z0-9_-])example[.](com|net|org)($|[^A-Za-z0-9.-])|[.]example($|[^A-Za-z0-9.-])" -}}
{{- if or (regexMatch $word $value) (regexMatch $domain $value) -}}
{{- fail (printf "%s: %q contains a placeholder; replace it with a value of your own" $path $value) -}}
{{- end -}}
{{- end -}}
{{- end }}
