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
later ones override earlier ones. It also contains derived values: name, release, namespace, fullname, selector, labels,
imageReference, secret, configMap, serviceAccountName, secretFiles, and in env the addresses of the services that it calls.
*/}}
{{- define "platform.services" -}}
{{- $release := include "platform.release" . -}}
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
{{- $_ := set $s "release" $release -}}
{{- $_ := set $s "namespace" $.Release.Namespace -}}
{{- $_ := set $s "fullname" (printf "%s-%s" $release $name | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $s "secret" ($s.existingSecret | default $s.fullname) -}}
{{- $_ := set $s "configMap" $s.fullname -}}
{{- $_ := set $s "serviceAccountName" ($s.serviceAccount.name | default (ternary $s.fullname "default" $s.serviceAccount.create)) -}}
{{- $_ := set $s "selector" (dict "app.kubernetes.io/name" $name "app.kubernetes.io/instance" $release) -}}
{{- $tag := $s.image.tag | default $.Chart.AppVersion -}}
{{- $labels := dict "app.kubernetes.io/version" (regexReplaceAll "^[^A-Za-z0-9]+|[^A-Za-z0-9]+$" (trunc 63 $tag) "") -}}
{{- $_ := set $s "labels" (merge $labels $s.selector (include "platform.labels" $ | fromYaml)) -}}
{{- $image := $s.image.repository | default "holdfast/{service}" | replace "{service}" $name -}}
{{- with $s.image.registry -}}
{{- $image = printf "%s/%s" . $image -}}
{{- end -}}
{{- $_ := set $s "imageReference" (ternary (printf "%s@%s" $image $s.image.digest) (printf "%s:%s" $image $tag) (not (empty $s.image.digest))) -}}
{{- $_ := set $services $name $s -}}
{{- end -}}
{{- $called := dict -}}
{{- range $services -}}
{{- range .calls -}}
{{- $_ := set $called . true -}}
{{- end -}}
{{- end -}}
{{- range $s := $services -}}
{{- $env := dict -}}
{{- if $s.calls -}}
{{- $pattern := printf "http://%s-{service}:%v" $release $.Values.defaults.port -}}
{{- $_ := set $env "UPSTREAM_URL" $pattern -}}
{{- range $name := $s.calls -}}
{{- $to := index $services $name -}}
{{- $url := printf "http://%s:%v" $to.fullname $to.port -}}
{{- if ne $url (replace "{service}" $name $pattern) -}}
{{- $_ := set $env (printf "UPSTREAM_%s_URL" (upper $name)) $url -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $s.state -}}
{{- $_ := set $env $s.state (printf "%s/%s" (include "platform.state" $) (lower $s.state | trimSuffix "_path")) -}}
{{- end -}}
{{- range $key, $value := $s.env -}}
{{- $_ := set $env $key (tpl $value $) -}}
{{- end -}}
{{- $_ := set $s "env" $env -}}
{{- $files := dict "DATABASE_URL" $s.database "WORKER_DATABASE_URL" $s.database "REDIS_URL" $s.redis "CALLER_SIGN_KEYS" $s.calls "CALLER_VERIFY_KEYS" (index $called $s.name) -}}
{{- $_ := set $files "KAFKA_SASL_PASSWORD" (and (or $s.topics $s.reads) $env.KAFKA_SASL_MECHANISM) -}}
{{- range $key, $has := $s.secrets.keys -}}
{{- $_ := set $files $key $has -}}
{{- end -}}
{{- $names := list -}}
{{- range $key, $has := $files -}}
{{- if $has -}}
{{- $names = append $names $key -}}
{{- end -}}
{{- end -}}
{{- $_ := set $s "secretFiles" $names -}}
{{- $_ := set $s "secretEnv" (ternary (list "KAFKA_SASL_USERNAME") list (has "KAFKA_SASL_PASSWORD" $names)) -}}
{{- end -}}
{{- toJson $services -}}
{{- end }}

{{/* The address families of a Service, as lines of its spec. */}}
{{- define "platform.ipFamilies" -}}
{{- if and (gt (len .ipFamilies) 1) (not (hasSuffix "DualStack" .ipFamilyPolicy)) }}
{{- fail (printf "services.%s.ipFamilyPolicy: PreferDualStack or RequireDualStack is necessary for two ipFamilies" .name) }}
{{- end }}
{{- with .ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .ipFamilies }}
  ipFamilies: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* Fails if env contains a name that is no setting, which the service would ignore. */}}
{{- define "platform.checkSettings" -}}
{{- $known := .Files.Get "files/settings.yaml" | fromYaml -}}
{{- $services := include "platform.services" . | fromJson -}}
{{- $any := list -}}
{{- range $known -}}
{{- $any = concat $any . -}}
{{- end -}}
{{- range $key, $value := .Values.defaults.env -}}
{{- if not (has $key $any) -}}
{{- fail (printf "defaults.env.%s is no setting of a service (docs/settings.md); set other variables with extraEnv" $key) -}}
{{- end -}}
{{- end -}}
{{- range $name, $block := .Values.services -}}
{{- $own := index $known $name | default list -}}
{{- range (index $services $name).calls -}}
{{- $own = append $own (printf "UPSTREAM_%s_URL" (upper .)) -}}
{{- end -}}
{{- range $key, $value := ($block | default dict).env -}}
{{- if not (or (has $key $own) (hasKey $.Values.defaults.env $key)) -}}
{{- fail (printf "services.%s.env.%s is no setting of %s (docs/settings.md); set other variables with extraEnv" $name $key $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
