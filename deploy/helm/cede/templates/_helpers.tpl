{{- /* Metadata of an object in the namespace of the release. */ -}}
{{- define "cede.metadata" -}}
name: {{ .Values.name }}
namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "cede.selector" -}}
app: {{ .Values.name }}
{{- end }}

{{- /* Configuration of cede kubernetes; docs/reference/configuration.md lists every key. */ -}}
{{- define "cede.config" -}}
{{- $tls := dict "cert" "/etc/cede/tls/tls.crt" "key" "/etc/cede/tls/tls.key" -}}
{{- if .Values.authentication.clientCertificates -}}
{{- $_ := set $tls "ca" "/etc/cede/tls/ca.crt" -}}
{{- $_ := set $tls "verify_client" true -}}
{{- end -}}
{{- $config := dict
  "listen" (dict "http" "0.0.0.0:4646" "metrics" "0.0.0.0:4649")
  "tls" $tls
  "telemetry" (dict "open" true)
  "kubernetes" (dict "policy" .Values.policy.name "policy_config" "/etc/cede/config/policy.yaml") -}}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) -}}
{{- end }}
