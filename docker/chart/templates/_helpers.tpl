{{- /* The prefix of the names of objects. */}}
{{- define "svc.base" -}}
{{- $name := list .Release.Name .Values.nameOverride | compact | join "-" }}
{{- .Values.fullnameOverride | default $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "svc.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "svc.base" .) "default") }}
{{- end }}

{{- define "svc.labels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "svc" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The selector of the pods of one process; it never changes. Takes (dict "root" $ "part" "edge"). */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "svc" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "svc.name" -}}
{{ include "svc.base" .root }}-{{ .part }}
{{- end }}

{{- /* The secrets of a process: all of a Secret that is for it alone, and of the one for all those that it reads. Takes (dict "root" $ "part" "edge"). */}}
{{- define "svc.secretKeys" -}}
{{- $kafka := list "SVC_KAFKA_PASSWORD" "SVC_KAFKA_CA" "SVC_KAFKA_CERTIFICATE" "SVC_KAFKA_KEY" }}
{{- $stored := concat $kafka (list "SVC_CLICKHOUSE_URL" "SVC_CLICKHOUSE_SHARDS" "SVC_CLICKHOUSE_READER_URL" "SVC_CLICKHOUSE_CA") }}
{{- $read := dict "edge" (append $kafka "SVC_RATE_LIMIT_STORE") "processors" $stored "writer" $stored "migrate" $stored }}
{{- $read = merge $read (dict "dashboard" (concat $stored (list "SVC_ADMIN_PASSWORD" "SVC_SESSION_SECRET" "SVC_DASHBOARD_PROXY_SECRET")) "notify" (append $stored "SVC_NOTIFY_CHANNELS")) }}
{{- $own := (index .root.Values .part).secret }}
{{- $keys := list }}
{{- range ($own | default .root.Values.secret).keys }}
{{- if or $own (has . (index $read $.part)) }}{{ $keys = append $keys . }}{{ end }}
{{- end }}
{{- toJson $keys }}
{{- end }}

{{- /* Not empty if notifications have channels: without any, nothing would be sent. */}}
{{- define "svc.notifies" -}}
{{- if has "SVC_NOTIFY_CHANNELS" (.Values.notify.secret | default .Values.secret).keys }}true{{ end }}
{{- end }}

{{- /* The name of the topic `grouped`: that of SVC_TOPIC_NAMES, or the one under the prefix. */}}
{{- define "svc.groupedTopic" -}}
{{- $name := printf "%sgrouped" (.Values.settings.SVC_TOPIC_PREFIX | default "svc.") }}
{{- range splitList "," (.Values.settings.SVC_TOPIC_NAMES | default "") }}
{{- $parts := splitn "=" 2 . }}
{{- if eq (trim $parts._0) "grouped" }}{{ $name = trim $parts._1 }}{{ end }}
{{- end }}
{{- $name }}
{{- end }}

{{- /* The pod of one process. Takes (dict "root" $ "part" "edge" "command" (list "edge") "port" 8080 "env" (list …) "grace" 30); "claim" where `data` is a
     volume claim, "hook" where it runs before the objects of the release exist. Values of the process win over those for all. */}}
{{- define "svc.pod" -}}
{{- $root := .root }}
{{- $own := index $root.Values .part }}
{{- $secret := ($own.secret | default $root.Values.secret).name }}
{{- $keys := include "svc.secretKeys" . | fromJsonArray }}
metadata:
  labels:
    {{- include "svc.selector" . | nindent 4 }}
    {{- with merge (dict) ($own.podLabels | default dict) $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/settings: {{ $root.Values.settings | toJson | sha256sum }}
    {{- with merge (dict) ($own.podAnnotations | default dict) $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if not .hook }}
  serviceAccountName: {{ include "svc.serviceAccount" $root }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with $own.priorityClassName | default $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{ toJson . }}
  {{- end }}
  {{- with $own.nodeSelector | default $root.Values.nodeSelector }}
  nodeSelector: {{ toJson . }}
  {{- end }}
  {{- with $own.tolerations | default $root.Values.tolerations }}
  tolerations: {{ toJson . }}
  {{- end }}
  {{- with $own.affinity | default $root.Values.affinity }}
  affinity: {{ toJson . }}
  {{- end }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- if .hook }}
  restartPolicy: Never
  {{- else }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "svc.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .part }}
      {{- with $root.Values.image }}
      image: "{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $root.Chart.AppVersion }}{{ end }}"
      {{- end }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ toJson .command }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      envFrom:
        - configMapRef: {name: {{ include "svc.base" $root }}-{{ ternary "migrate" "settings" (hasKey . "hook") }}}
      env:
        - {name: SVC_DATA_DIR, value: /data}
        {{- range $key, $value := $own.settings }}
        - {name: {{ $key }}, value: {{ $value | quote }}}
        {{- end }}
        {{- range $keys }}
        - {name: {{ . }}_FILE, value: /secrets/{{ . }}}
        {{- end }}
        {{- with concat (.env | default list) $root.Values.extraEnv ($own.extraEnv | default list) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- if .port }}
      ports:
        - {name: http, containerPort: {{ .port }}}
      {{- /* The processes wait for servers and rights by themselves: alive is only who answers. */}}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 90
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 3
      {{- end }}
      resources:
        {{- toYaml $own.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: shm, mountPath: /dev/shm}
        - {name: data, mountPath: /data}
        {{- if $keys }}
        - {name: secrets, mountPath: /secrets, readOnly: true}
        {{- end }}
        {{- if $root.Values.certificates }}
        - {name: certificates, mountPath: /certificates, readOnly: true}
        {{- end }}
        {{- with $own.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: 256Mi}}
    {{- if not .claim }}
    - {name: data, emptyDir: {}}
    {{- end }}
    {{- if $keys }}
    - name: secrets
      secret:
        secretName: {{ $secret }}
        defaultMode: 0440
        items:
          {{- range $keys }}
          - {key: {{ . }}, path: {{ . }}}
          {{- end }}
    {{- end }}
    {{- with $root.Values.certificates }}
    - name: certificates
      configMap: {name: {{ . }}}
    {{- end }}
    {{- with $own.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
