{{- define "uas.name" -}}
{{- printf "%s-uas-gateway" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "uas.selector" -}}
app.kubernetes.io/name: uas-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "uas.labels" -}}
{{ include "uas.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
