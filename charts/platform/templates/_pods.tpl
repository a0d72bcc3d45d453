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

{{/*
A service as the owner of its database, for migrations and jobs: it reads only the migration's Secret, and has the values of
migrate. Its pods do not match the service's selector, so that neither the Service nor the disruption budget includes them.
*/}}
{{- define "platform.owner" -}}
{{- $o := deepCopy . -}}
{{- range $field := list "extraEnv" "extraEnvFrom" "initContainers" "podAnnotations" "podLabels" "resources" -}}
{{- $_ := set $o $field (index $o.migrate $field) -}}
{{- end -}}
{{- $_ := unset $o "extraContainers" -}}
{{- $_ := unset $o "configMap" -}}
{{- $_ := unset $o "state" -}}
{{- $_ := set $o "secret" (.migrate.existingSecret | default (printf "%s-migrate" .fullname)) -}}
{{- $_ := set $o "secretFiles" (concat (list "MIGRATE_DATABASE_URL") (ternary (list "KAFKA_SASL_PASSWORD") list (has "KAFKA_SASL_PASSWORD" .secretFiles))) -}}
{{- $_ := set $o "secretEnv" (concat (list "APP_ROLE" "WORKER_ROLE") .secretEnv) -}}
{{- $existing := ternary "" .serviceAccountName .serviceAccount.create -}}
{{- $_ := set $o "serviceAccountName" (.migrate.serviceAccountName | default $existing) -}}
{{- $_ := set $o "labels" (dict "app.kubernetes.io/name" (printf "%s-migrate" .name) "app.kubernetes.io/instance" .release "app.kubernetes.io/part-of" "holdfast" "app.kubernetes.io/component" "migrate") -}}
{{- toJson $o -}}
{{- end }}

{{/* The folder of the file that stays when the container restarts. It is in memory, so writes to it wait for no disk. */}}
{{- define "platform.state" -}}
/var/lib/holdfast
{{- end }}

{{/* The volumes of a pod and the volumeMounts of its containers, as JSON. */}}
{{- define "platform.mounts" -}}
{{- $volumes := list -}}
{{- $mounts := list -}}
{{- $all := .mounts -}}
{{- range .trustBundles -}}
{{- $all = append $all (merge (dict "path" (include "platform.trustPath" .)) .) -}}
{{- end -}}
{{- if eq .secrets.mode "files" -}}
{{- $all = append $all (dict "secret" .secret "path" .secrets.path) -}}
{{- end -}}
{{- range $all -}}
{{- $name := .secret | default .configMap | replace "." "-" | trunc 60 | trimSuffix "-" -}}
{{- $source := ternary (dict "secret" (dict "secretName" .secret)) (dict "configMap" (dict "name" .configMap)) (not (empty .secret)) -}}
{{- if .configMap -}}
{{- $name = printf "cm-%s" $name -}}
{{- end -}}
{{- $volumes = append $volumes (merge (dict "name" $name) $source) -}}
{{- $mounts = append $mounts (dict "name" $name "mountPath" .path "readOnly" true) -}}
{{- end -}}
{{- if .state -}}
{{- $volumes = append $volumes (dict "name" "state" "emptyDir" (dict "medium" "Memory" "sizeLimit" "16Mi")) -}}
{{- $mounts = append $mounts (dict "name" "state" "mountPath" (include "platform.state" .)) -}}
{{- end -}}
{{- dict "volumes" (uniq (concat $volumes .extraVolumes)) "volumeMounts" (concat $mounts .extraVolumeMounts) | toJson -}}
{{- end }}

{{- define "platform.trustPath" -}}
/etc/holdfast/trust/{{ .configMap | default .secret }}
{{- end }}

{{/* The metadata of a pod: its labels and annotations. */}}
{{- define "platform.podMetadata" -}}
labels: {{- toYaml (merge dict .labels .podLabels) | nindent 2 }}
{{- with merge dict .podAnnotations (.annotations | default dict) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The common part of all pods of a service. The level "restricted" of the Pod Security Standards requires most of it. */}}
{{- define "platform.pod" -}}
{{- $pod := merge (dict "automountServiceAccountToken" .serviceAccount.automountToken "enableServiceLinks" false "serviceAccountName" .serviceAccountName) .pod -}}
{{- $_ := set $pod "volumes" (include "platform.mounts" . | fromJson).volumes -}}
{{- $pullSecrets := list -}}
{{- range .image.pullSecrets -}}
{{- $pullSecrets = append $pullSecrets (dict "name" .) -}}
{{- end -}}
{{- $_ := set $pod "imagePullSecrets" $pullSecrets -}}
{{- range $field, $value := $pod -}}
{{- if and (empty $value) (not (kindIs "bool" $value)) -}}
{{- $_ := unset $pod $field -}}
{{- end -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end }}

{{/* The common part of all containers of a service. The root file system is read-only. */}}
{{- define "platform.container" -}}
{{- $s := . -}}
{{- $env := list -}}
{{- if .trustBundles -}}
{{- $paths := list -}}
{{- range .trustBundles -}}
{{- $paths = append $paths (include "platform.trustPath" .) -}}
{{- end -}}
{{- $env = append $env (dict "name" "SSL_CERT_DIR" "value" (join ":" $paths)) -}}
{{- end -}}
{{- $from := list -}}
{{- with .configMap -}}
{{- $from = append $from (dict "configMapRef" (dict "name" .)) -}}
{{- end -}}
{{- if eq .secrets.mode "env" -}}
{{- $from = append $from (dict "secretRef" (dict "name" .secret)) -}}
{{- else if eq .secrets.mode "files" -}}
{{- range .secretFiles -}}
{{- $env = append $env (dict "name" (printf "%s_FILE" .) "value" (printf "%s/%s" $s.secrets.path .)) -}}
{{- end -}}
{{- range .secretEnv -}}
{{- $env = append $env (dict "name" . "valueFrom" (dict "secretKeyRef" (dict "name" $s.secret "key" .))) -}}
{{- end -}}
{{- end -}}
{{- $container := dict "image" .imageReference "imagePullPolicy" .image.pullPolicy "securityContext" .containerSecurityContext "resources" .resources -}}
{{- range $field, $value := dict "env" (concat $env .extraEnv) "envFrom" (concat $from .extraEnvFrom) "volumeMounts" (include "platform.mounts" . | fromJson).volumeMounts -}}
{{- if $value -}}
{{- $_ := set $container $field $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $container -}}
{{- end }}

{{/* How long a pod of a service may take to stop: its preStop hook sleeps, it still serves, and its last requests end. */}}
{{- define "platform.stopSeconds" -}}
{{- $preStop := (.lifecycle.preStop | default dict).sleep | default dict -}}
{{- add (int64 $preStop.seconds) (mul 2 (int64 .drain.delaySeconds)) (int64 .drain.graceSeconds) -}}
{{- end }}

{{/* The seconds after which Kubernetes kills a pod that shuts down. */}}
{{- define "platform.gracePeriod" -}}
{{- .terminationGracePeriodSeconds | default (include "platform.stopSeconds" .) -}}
{{- end }}

{{/* Fails if Kubernetes would kill a pod before it has stopped. */}}
{{- define "platform.checkStop" -}}
{{- $preStop := .lifecycle.preStop | default dict -}}
{{- $grace := int64 .terminationGracePeriodSeconds -}}
{{- $needed := int64 (include "platform.stopSeconds" .) -}}
{{- if and $preStop (not $preStop.sleep) (eq $grace 0) -}}
{{- fail (printf "services.%s.lifecycle.preStop: set terminationGracePeriodSeconds too, to the longest time of the hook and %d seconds to drain" .name $needed) -}}
{{- end -}}
{{- if and (gt $grace 0) (lt $grace $needed) -}}
{{- fail (printf "services.%s.terminationGracePeriodSeconds: %d is too short; set at least %d: the sleep of lifecycle.preStop, twice drain.delaySeconds, and drain.graceSeconds" .name $grace $needed) -}}
{{- end -}}
{{- end }}
