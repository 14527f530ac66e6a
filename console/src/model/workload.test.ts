import { expect, it } from 'vitest'
import { FIRST, objectOf, wrong } from './workload'

const GOOD = { ...FIRST, name: 'web', image: 'nginx:1.29', port: '80', env: [{ name: 'MODE', value: 'a' }] }

it('says which fields are wrong', () => {
  expect(wrong(GOOD)).toEqual([])
  expect(wrong(FIRST)).toEqual(['name', 'image'])
  expect(wrong({ ...GOOD, name: 'Web', replicas: -1, port: '70000', cpu: 'lots', memory: '1 GB', env: [{ name: '1 x', value: '' }] })).toEqual(['name', 'replicas', 'port', 'cpu', 'memory', 'env'])
})

it('writes what the server takes', () => {
  const made = objectOf(GOOD, 'apps/v1', 'Deployment', 'default')
  expect(made.spec).toEqual({
    replicas: 2, selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'nginx:1.29', ports: [{ containerPort: 80 }], env: [{ name: 'MODE', value: 'a' }], resources: { requests: { cpu: '100m', memory: '128Mi' } } }] } },
  })
  expect(objectOf(GOOD, 'apps/v1', 'DaemonSet', 'default').spec.replicas).toBeUndefined()
  expect(objectOf(GOOD, 'apps/v1', 'StatefulSet', 'default').spec.serviceName).toBe('web')
  expect(objectOf({ ...GOOD, command: 'echo' }, 'batch/v1', 'Job', 'default').spec).toMatchObject({ completions: 2, template: { spec: { restartPolicy: 'Never', containers: [{ command: ['sh', '-c', 'echo'] }] } } })
})
