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

{{/*
The annotations with which a controller reads the timeout of an Ingress, because the object has no field for it. An ALB also stops a
target's connections after the time that its pod still serves.
*/}}
{{- define "platform.ingressAnnotations" -}}
{{- $seconds := int64 .ingress.timeoutSeconds -}}
{{- if eq .ingress.controller "alb" }}
alb.ingress.kubernetes.io/target-group-attributes: deregistration_delay.timeout_seconds={{ int64 .gateway.drain.delaySeconds }}
{{- end }}
{{- if $seconds }}
{{- if eq .ingress.controller "nginx" }}
nginx.ingress.kubernetes.io/proxy-read-timeout: "{{ $seconds }}"
nginx.ingress.kubernetes.io/proxy-send-timeout: "{{ $seconds }}"
{{- else if eq .ingress.controller "alb" }}
alb.ingress.kubernetes.io/load-balancer-attributes: idle_timeout.timeout_seconds={{ $seconds }}
{{- else if eq .ingress.controller "openshift" }}
haproxy.router.openshift.io/timeout: {{ $seconds }}s
{{- else }}
{{- fail "ingress.timeoutSeconds: set ingress.controller too, because each controller reads the timeout from a different annotation" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Merges two lists of attributes, such as a=1,b=2, as an ALB reads them from one annotation. Those of the second take precedence. */}}
{{- define "platform.attributes" -}}
{{- $all := dict -}}
{{- range $attribute := splitList "," (join "," .) -}}
{{- $parts := splitn "=" 2 (trim $attribute) -}}
{{- if $parts._0 -}}
{{- $_ := set $all $parts._0 (printf "%s=%s" $parts._0 ($parts._1 | default "")) -}}
{{- end -}}
{{- end -}}
{{- $list := list -}}
{{- range $all -}}
{{- $list = append $list . -}}
{{- end -}}
{{- join "," $list -}}
{{- end }}

{{/* Fails if an ALB would send requests to pods that have stopped. */}}
{{- define "platform.checkEntry" -}}
{{- $delay := int64 .gateway.drain.delaySeconds -}}
{{- if and .ingress.enabled (eq .ingress.controller "alb") (lt $delay 30) -}}
{{- fail (printf "services.gateway.drain.delaySeconds: %d is too short for ingress.controller alb; set at least 30, because a load balancer can send requests to a pod for 30 seconds after Kubernetes has removed it" $delay) -}}
{{- end -}}
{{- end }}
