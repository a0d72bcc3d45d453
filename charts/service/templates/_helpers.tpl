{{/* The service's own name is that of its block in charts/platform. */}}
{{- define "service.fullname" -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "service.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "service.labels" -}}
{{ include "service.selector" . }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/version: {{ regexReplaceAll "^[^A-Za-z0-9]+|[^A-Za-z0-9]+$" (include "service.tag" . | trunc 63) "" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "service.tag" -}}
{{ .Values.image.tag | default ((.Values.global).image | default dict).tag | default .Chart.AppVersion | default "dev" }}
{{- end }}

{{- define "service.image" -}}
{{- $repository := .Values.image.repository | default (printf "holdfast/%s" .Chart.Name) -}}
{{- $global := (.Values.global).image | default dict -}}
{{- $registry := .Values.image.registry | default $global.registry -}}
{{ with $registry }}{{ . }}/{{ end }}{{ $repository }}:{{ include "service.tag" . }}
{{- end }}

{{- define "service.secret" -}}
{{ .Values.existingSecret | default (include "service.fullname" .) }}
{{- end }}

{{/* What "restricted" of the Pod Security Standards demands, and a root file system that nobody writes to. */}}
{{- define "service.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "service.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* The settings of all services, and the service's own, which win. */}}
{{- define "service.env" -}}
{{- range $name, $value := merge dict .Values.env ((.Values.global).env | default dict) }}
{{ $name }}: {{ tpl $value $ | quote }}
{{- end }}
{{- end }}

{{- define "service.mounts" -}}
{{- with .Values.mounts }}
volumeMounts:
  {{- range . }}
  - { name: {{ .secret }}, mountPath: {{ .path }}, readOnly: true }
  {{- end }}
{{- end }}
{{- end }}

{{- define "service.volumes" -}}
{{- with .Values.mounts }}
volumes:
  {{- range . }}
  - { name: {{ .secret }}, secret: { secretName: {{ .secret }} } }
  {{- end }}
{{- end }}
{{- end }}

{{/* What the containers of the migration have in common. */}}
{{- define "service.migrateContainer" -}}
image: {{ include "service.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- include "service.containerSecurity" . | nindent 2 }}
envFrom:
  - secretRef: { name: {{ .Values.migrate.existingSecret | default (printf "%s-migrate" (include "service.fullname" .)) }} }
resources:
  requests: { cpu: 50m, memory: 64Mi }
  limits: { memory: 256Mi }
{{- include "service.mounts" . }}
{{- end }}
