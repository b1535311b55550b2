{{- define "strongroom.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "strongroom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "strongroom.labels" -}}
{{ include "strongroom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "strongroom.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* What every pod of the vault is and is not allowed to be. */}}
{{- define "strongroom.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
# Reads the files of Secrets, which root owns.
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "strongroom.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The variables that a server and the migration share: secrets come from files. */}}
{{- define "strongroom.env" -}}
- {name: STRONGROOM_DATABASE_URL_FILE, value: /etc/strongroom/secrets/database-url}
- {name: STRONGROOM_ROOT_KEY_FILE, value: /etc/strongroom/secrets/root.key}
{{- end -}}

{{- define "strongroom.mounts" -}}
- {name: secrets, mountPath: /etc/strongroom/secrets, readOnly: true}
{{- if .Values.secrets.databaseAuthority }}
- {name: database, mountPath: /etc/strongroom/database, readOnly: true}
{{- end }}
{{- end -}}

{{- define "strongroom.volumes" -}}
- name: secrets
  secret: {secretName: {{ .Values.secrets.name }}, defaultMode: 0440}
{{- if .Values.secrets.databaseAuthority }}
- name: database
  configMap: {name: {{ .Values.secrets.databaseAuthority }}}
{{- end }}
{{- end -}}
