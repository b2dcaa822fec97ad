{{- define "svc.labels" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* What selects the pods of one process; it never changes. Takes (dict "root" $ "part" "edge"). */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "svc.name" -}}
{{ .root.Release.Name }}-{{ .part }}
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
     volume claim, "hook" where it runs before the objects of the release exist. */}}
{{- define "svc.pod" -}}
{{- $root := .root }}
{{- $own := index $root.Values .part }}
{{- $secret := $own.secret | default $root.Values.secret }}
metadata:
  labels:
    {{- include "svc.selector" . | nindent 4 }}
  annotations:
    checksum/settings: {{ $root.Values.settings | toJson | sha256sum }}
spec:
  {{- if not .hook }}
  serviceAccountName: {{ $root.Release.Name }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{ toJson . }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector: {{ toJson . }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations: {{ toJson . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
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
      image: "{{ $root.Values.image.repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ toJson .command }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      envFrom:
        - configMapRef: {name: {{ $root.Release.Name }}-{{ ternary "migrate" "settings" (hasKey . "hook") }}}
      env:
        - {name: SVC_DATA_DIR, value: /data}
        {{- range $key, $value := $own.settings }}
        - {name: {{ $key }}, value: {{ $value | quote }}}
        {{- end }}
        {{- range $secret.keys }}
        - {name: {{ . }}_FILE, value: /secrets/{{ . }}}
        {{- end }}
        {{- with .env }}
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
        - {name: secrets, mountPath: /secrets, readOnly: true}
        {{- if $root.Values.certificates }}
        - {name: certificates, mountPath: /certificates, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: 256Mi}}
    {{- if not .claim }}
    - {name: data, emptyDir: {}}
    {{- end }}
    - name: secrets
      secret: {secretName: {{ $secret.name }}, defaultMode: 0440}
    {{- with $root.Values.certificates }}
    - name: certificates
      configMap: {name: {{ . }}}
    {{- end }}
{{- end }}
