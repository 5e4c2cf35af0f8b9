{{/* The controllers that run, as JSON. What no schema can tell about values is refused here. */}}
{{- define "hedgerow.controllers" -}}
{{- $chosen := .Values.controllers | default (list "bluegreen" "cronjob" "memcached") -}}
{{- if not (has "secretsync" $chosen) -}}
{{- range $name, $value := .Values.secretsync -}}
{{- if $value -}}
{{- fail (printf "secretsync.%s needs secretsync in controllers" $name) -}}
{{- end -}}
{{- end -}}
{{- else if .Values.namespaces -}}
{{- fail "namespaces: secretsync works on Namespaces, and cannot keep to some of them" -}}
{{- end -}}
{{- range .Values.namespaces -}}
{{- if or (eq . $.Release.Namespace) (has . (list "kube-system" "kube-public" "kube-node-lease")) -}}
{{- fail (printf "namespaces: the operator may write nothing in %s" .) -}}
{{- end -}}
{{- end -}}
{{- toJson $chosen -}}
{{- end }}

{{/* Whether there are webhooks: never for an operator that keeps to some namespaces. */}}
{{- define "hedgerow.webhooks" -}}
{{- if and .Values.webhooks (not .Values.namespaces) }}true{{ end -}}
{{- end }}

{{/* What the names of the shards' Deployments and Leases end with; one empty text if undivided. */}}
{{- define "hedgerow.suffixes" -}}
{{- $suffixes := list -}}
{{- $count := int .Values.shards -}}
{{- if eq $count 1 -}}
{{- $suffixes = list "" -}}
{{- else -}}
{{- range $number := until $count -}}
{{- $suffixes = append $suffixes (printf "-shard-%d-of-%d" $number $count) -}}
{{- end -}}
{{- end -}}
{{- toJson $suffixes -}}
{{- end }}

{{/* The image: by its digest if there is one, otherwise by its tag. */}}
{{- define "hedgerow.image" -}}
{{- .Values.image.repository -}}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}
