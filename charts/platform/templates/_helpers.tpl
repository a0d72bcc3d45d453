{{/* The prefix of all names, and the label app.kubernetes.io/instance. */}}
{{- define "platform.release" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{/* toYaml quotes a name that YAML reads as another type, such as 2024 or true. */}}
{{- define "platform.labels" -}}
app.kubernetes.io/instance: {{ include "platform.release" . | toYaml }}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
The metadata of an object: kind, name, namespace, labels, annotations, the values of metadata, and own, the labels and annotations of
a more specific value. Labels of the chart take precedence, because selectors use them. Annotations of the values take
precedence; those that contain a list of attributes are merged.
*/}}
{{- define "platform.metadata" -}}
{{- $kind := index .metadata .kind | default dict -}}
{{- $all := .metadata.all | default dict -}}
{{- $own := .own | default dict -}}
{{- $labels := merge dict .labels ($kind.labels | default dict) ($own.labels | default dict) ($all.labels | default dict) -}}
{{- $annotations := merge dict ($kind.annotations | default dict) ($own.annotations | default dict) ($all.annotations | default dict) (.annotations | default dict) -}}
{{- range $name, $attributes := .annotations | default dict -}}
{{- if hasSuffix "-attributes" $name -}}
{{- $_ := set $annotations $name (include "platform.attributes" (list $attributes (get $annotations $name))) -}}
{{- end -}}
{{- end -}}
name: {{ toYaml .name }}
namespace: {{ toYaml .namespace }}
labels: {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The metadata of an object that belongs to no service: root, kind, name, annotations, and own. */}}
{{- define "platform.sharedMetadata" -}}
{{- include "platform.metadata" (merge (dict "namespace" .root.Release.Namespace "labels" (include "platform.labels" .root | fromYaml) "metadata" .root.Values.defaults.metadata) .) -}}
{{- end }}

{{/* The annotations of a hook that Helm runs before it installs or upgrades. Hooks with a lower weight run first. */}}
{{- define "platform.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* Fails with an error on one line for an invalid combination of values. */}}
{{- define "platform.check" -}}
{{- if .Values.defaults.image.digest -}}
{{- fail "defaults.image.digest: a digest identifies a single image; set services.<name>.image.digest instead" -}}
{{- end -}}
{{- if and .Values.defaults.image.repository (not (contains "{service}" .Values.defaults.image.repository)) -}}
{{- fail (printf "defaults.image.repository: %q names a single image; write {service} where the name of the service belongs, or set services.<name>.image.repository" .Values.defaults.image.repository) -}}
{{- end -}}
{{- include "platform.checkPlaceholders" . -}}
{{- include "platform.checkSettings" . -}}
{{- if and .Values.defaults.serviceAccount.name .Values.defaults.serviceAccount.create -}}
{{- fail "defaults.serviceAccount.name: an account for all services must exist, so set defaults.serviceAccount.create to false; or set services.<name>.serviceAccount.name" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateways, for example [{ name: external }]; without one, no request reaches the platform" -}}
{{- end -}}
{{- range include "platform.services" . | fromJson -}}
{{- if .enabled -}}
{{- include "platform.checkScaling" . -}}
{{- include "platform.checkStop" . -}}
{{- end -}}
{{- end -}}
{{- $known := concat (keys (include "platform.services" . | fromJson)) (list "migrate" "test") -}}
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
