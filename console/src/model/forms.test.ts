import { expect, it } from 'vitest'
import { blank, formOf, objectOf, type ObjectForm, wrong } from './forms'

const GROUPS = ['', 'apps', 'batch', 'policy.karmada.io', 'atoll.io']
const of = (kind: string) => GROUPS.map((group) => formOf(group, kind)).find(Boolean) as ObjectForm
const filled = (kind: string, text: Record<string, string>, pairs = [{ name: 'MODE', value: 'a' }]) => ({ text: { ...blank(of(kind)).text, ...text }, pairs: of(kind).pairs ? pairs : [] })
const made = (kind: string, text: Record<string, string>) => objectOf(of(kind), filled(kind, text), 'v1', kind, 'default')
const WEB = { name: 'web', image: 'nginx:1.29', port: '80' }

it('says which fields are wrong', () => {
  const form = of('Deployment')
  expect(wrong(form, filled('Deployment', WEB))).toEqual([])
  expect(wrong(form, blank(form))).toEqual(['name', 'image'])
  const bad = { name: 'Web', image: ' ', replicas: '-1', port: '70000', cpu: 'lots', memory: '1 GB' }
  expect(wrong(form, filled('Deployment', bad, [{ name: '1 x', value: '' }]))).toEqual(['name', 'image', 'replicas', 'port', 'cpu', 'memory', 'pairs'])
  expect(wrong(of('ConfigMap'), filled('ConfigMap', { name: 'a' }, [{ name: 'k', value: '1' }, { name: 'k', value: '2' }]))).toEqual(['pairs'])
})

it('writes workloads that the server takes', () => {
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'nginx:1.29', ports: [{ containerPort: 80 }], env: [{ name: 'MODE', value: 'a' }], resources: { requests: { cpu: '100m', memory: '128Mi' } } }] } }
  expect(made('Deployment', WEB)).toEqual({ apiVersion: 'v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } }, spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template } })
  expect(made('DaemonSet', WEB).spec.replicas).toBeUndefined()
  expect(made('StatefulSet', WEB).spec.serviceName).toBe('web')
  expect(made('Job', { ...WEB, replicas: '2', command: 'echo' }).spec).toMatchObject({ completions: 2, template: { spec: { restartPolicy: 'Never', containers: [{ command: ['sh', '-c', 'echo'] }] } } })
  expect(made('CronJob', WEB).spec).toMatchObject({ schedule: '0 3 * * *', jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never' } } } } })
})

it('writes what workloads need besides', () => {
  expect(made('Service', { name: 'web', app: 'web', port: '80' }).spec).toEqual({ type: 'ClusterIP', selector: { app: 'web' }, ports: [{ port: 80, targetPort: 80 }] })
  expect(made('Secret', { name: 'a' })).toMatchObject({ type: 'Opaque', stringData: { MODE: 'a' } })
  expect(made('PersistentVolumeClaim', { name: 'a' }).spec).toEqual({ accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } })
  expect(made('FederatedResourceQuota', { name: 'a', cpu: '10' }).spec).toEqual({ overall: { 'requests.cpu': '10' } })
  expect(made('Workspace', { name: 'a', instances: 'fleet, compute' }).spec).toEqual({ instances: ['fleet', 'compute'] })
})

it('has no form for a kind of the same name in another group', () => {
  expect(formOf('', 'Service')).toBeDefined()
  expect(formOf('serving.knative.dev', 'Service')).toBeUndefined()
  expect(formOf('batch', 'Job')).toBeDefined()
  expect(formOf('batch.volcano.sh', 'Job')).toBeUndefined()
})
