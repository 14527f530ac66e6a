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

// Other groups have kinds of the same names.
const SPECS: Record<string, string> = {
  'apps/v1 Deployment': `spec:\n${WORKLOAD('Deployment')}`,
  'apps/v1 StatefulSet': `spec:\n  serviceName: example\n${WORKLOAD('StatefulSet')}`,
  'apps/v1 DaemonSet': `spec:\n${WORKLOAD('DaemonSet')}`,
  'batch/v1 Job': `spec:
  completions: 1
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: busybox:1.37
          command: ["sh", "-c", "echo done"]
`,
  'v1 Service': `spec:
  selector:
    app: example
  ports:
    - port: 80
      targetPort: 8080
`,
  'v1 ConfigMap': 'data:\n  key: value\n',
  'v1 Secret': 'type: Opaque\nstringData:\n  key: value\n',
  'v1 Namespace': '',
  'policy.karmada.io/v1alpha1 PropagationPolicy': `spec:
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
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: example\n${where}${SPECS[`${apiVersion} ${kind}`] ?? 'spec: {}\n'}`
}
