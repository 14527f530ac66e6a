// A first version of a new object.

const WORKLOAD = (kind: string) => `  ${kind === 'DaemonSet' ? '' : 'replicas: 3\n  '}selector:
    matchLabels:
      app: example
  template:
    metadata:
      labels:
        app: example
    spec:
      containers:
        - name: main
          image: nginx:1.29
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
`

const SPECS: Record<string, string> = {
  Deployment: `spec:\n${WORKLOAD('Deployment')}`,
  StatefulSet: `spec:\n  serviceName: example\n${WORKLOAD('StatefulSet')}`,
  DaemonSet: `spec:\n${WORKLOAD('DaemonSet')}`,
  Job: `spec:
  completions: 1
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox:1.37
          command: ["sh", "-c", "echo done"]
`,
  Service: `spec:
  selector:
    app: example
  ports:
    - port: 80
      targetPort: 8080
`,
  ConfigMap: 'data:\n  key: value\n',
  Secret: 'type: Opaque\nstringData:\n  key: value\n',
  Namespace: '',
  PropagationPolicy: `spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: example
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        dynamicWeight: AvailableReplicas
`,
}

export function starter(apiVersion: string, kind: string, namespace?: string): string {
  const where = namespace ? `  namespace: ${namespace}\n` : ''
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: example\n${where}${SPECS[kind] ?? 'spec: {}\n'}`
}
