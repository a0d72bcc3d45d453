{{/* The hosts of publicUrl and authUrl, as a JSON list. */}}
{{- define "platform.hosts" -}}
{{- $hosts := list -}}
{{- range list .Values.publicUrl .Values.authUrl -}}
{{- with . -}}
{{- $hosts = append $hosts (urlParse .).hostname -}}
{{- end -}}
{{- end -}}
{{- uniq $hosts | toJson -}}
{{- end }}

{{/* The annotations with which a controller reads the timeout of an Ingress, because the object has no field for it. */}}
{{- define "platform.ingressTimeout" -}}
{{- if .timeoutSeconds -}}
{{- $seconds := int64 .timeoutSeconds -}}
{{- if eq .controller "nginx" -}}
nginx.ingress.kubernetes.io/proxy-read-timeout: "{{ $seconds }}"
nginx.ingress.kubernetes.io/proxy-send-timeout: "{{ $seconds }}"
{{- else if eq .controller "alb" -}}
alb.ingress.kubernetes.io/load-balancer-attributes: idle_timeout.timeout_seconds={{ $seconds }}
{{- else if eq .controller "openshift" -}}
haproxy.router.openshift.io/timeout: {{ $seconds }}s
{{- else -}}
{{- fail "ingress.timeoutSeconds: set ingress.controller too, because each controller reads the timeout from a different annotation" -}}
{{- end -}}
{{- end -}}
{{- end }}
