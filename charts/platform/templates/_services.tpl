{{/* Overrides the values of the first map with those of the second, map by map. A null removes a key. */}}
{{- define "platform.override" -}}
{{- $base := first . -}}
{{- range $key, $value := last . -}}
{{- if and (kindIs "map" $value) (kindIs "map" (index $base $key)) -}}
{{- include "platform.override" (list (index $base $key) $value) -}}
{{- else if kindIs "invalid" $value -}}
{{- $_ := unset $base $key -}}
{{- else -}}
{{- $_ := set $base $key $value -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The services by name, as JSON. Each merges defaults, its block of services, and its entry in files/services.yaml, where
later ones override earlier ones. It also contains derived values: name, release, fullname, selector, labels,
imageReference, secret, and in env the addresses of the services that it calls.
*/}}
{{- define "platform.services" -}}
{{- $list := (.Files.Get "files/services.yaml" | fromYaml).services -}}
{{- range $name := keys .Values.services | sortAlpha -}}
{{- if not (hasKey $list $name) -}}
{{- fail (printf "services: %q is no service; they are %s" $name (keys $list | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- $services := dict -}}
{{- range $name, $entry := $list -}}
{{- $s := deepCopy $.Values.defaults -}}
{{- include "platform.override" (list $s (index $.Values.services $name | default dict)) -}}
{{- include "platform.override" (list $s ($entry | default dict)) -}}
{{- $_ := set $s "name" $name -}}
{{- $_ := set $s "release" $.Release.Name -}}
{{- $_ := set $s "fullname" (printf "%s-%s" $.Release.Name $name | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $s "secret" ($s.existingSecret | default $s.fullname) -}}
{{- $_ := set $s "selector" (dict "app.kubernetes.io/name" $name "app.kubernetes.io/instance" $.Release.Name) -}}
{{- $tag := $s.image.tag | default $.Chart.AppVersion -}}
{{- $labels := dict "app.kubernetes.io/version" (regexReplaceAll "^[^A-Za-z0-9]+|[^A-Za-z0-9]+$" (trunc 63 $tag) "") -}}
{{- $_ := set $s "labels" (merge $labels $s.selector (include "platform.labels" $ | fromYaml)) -}}
{{- $image := $s.image.repository | default (printf "holdfast/%s" $name) -}}
{{- with $s.image.registry -}}
{{- $image = printf "%s/%s" . $image -}}
{{- end -}}
{{- $_ := set $s "imageReference" (ternary (printf "%s@%s" $image $s.image.digest) (printf "%s:%s" $image $tag) (not (empty $s.image.digest))) -}}
{{- $_ := set $services $name $s -}}
{{- end -}}
{{- range $s := $services -}}
{{- $env := dict -}}
{{- if $s.calls -}}
{{- $pattern := printf "http://%s-{service}:%v" $.Release.Name $.Values.defaults.port -}}
{{- $_ := set $env "UPSTREAM_URL" $pattern -}}
{{- range $name := $s.calls -}}
{{- $to := index $services $name -}}
{{- $url := printf "http://%s:%v" $to.fullname $to.port -}}
{{- if ne $url (replace "{service}" $name $pattern) -}}
{{- $_ := set $env (printf "UPSTREAM_%s_URL" (upper $name)) $url -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $s.env -}}
{{- $_ := set $env $key (tpl $value $) -}}
{{- end -}}
{{- $_ := set $s "env" $env -}}
{{- end -}}
{{- toJson $services -}}
{{- end }}

{{/* The settings of a service for its ConfigMap. */}}
{{- define "platform.settings" -}}
HTTP_ADDR: ":{{ .port }}"
METRICS_ADDR: ":{{ .metricsPort }}"
STOP_DELAY: "{{ .drain.delaySeconds }}s"
STOP_TIMEOUT: "{{ sub .drain.graceSeconds 5 }}s"
{{- range $name, $value := .env }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* The common part of all pods of a service. The level "restricted" of the Pod Security Standards requires most of it. */}}
{{- define "platform.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with .image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .mounts }}
volumes:
  {{- range . }}
  - { name: {{ .secret }}, secret: { secretName: {{ .secret }} } }
  {{- end }}
{{- end }}
{{- end }}

{{/* The common part of all containers of a service. The root file system is read-only. */}}
{{- define "platform.container" -}}
image: {{ .imageReference }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- with .mounts }}
volumeMounts:
  {{- range . }}
  - { name: {{ .secret }}, mountPath: {{ .path }}, readOnly: true }
  {{- end }}
{{- end }}
{{- end }}

{{/* A pod that runs commands as the owner of the database. It does not match the service's selector, so that neither the Service nor the disruption budget includes it. */}}
{{- define "platform.ownerPodLabels" -}}
app.kubernetes.io/name: {{ .name }}-migrate
app.kubernetes.io/instance: {{ .release }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/component: migrate
{{- end }}

{{/* A container of such a pod: service, command, and env in addition to migrate.extraEnv. */}}
{{- define "platform.ownerContainer" -}}
name: {{ .command }}
{{ include "platform.container" .service }}
args: [{{ .command }}]
envFrom:
  - secretRef: { name: {{ .service.migrate.existingSecret | default (printf "%s-migrate" .service.fullname) }} }
{{- with concat (.env | default list) .service.migrate.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  requests: { cpu: 50m, memory: 64Mi }
  limits: { memory: 256Mi }
{{- end }}
