import { expect, it } from 'vitest'
import { revisions } from './revisions'

const template = (image: string, hash?: string) => ({ metadata: { labels: { app: 'web', ...(hash && { 'pod-template-hash': hash }) } }, spec: { containers: [{ name: 'main', image }] } })
const set = (image: string, revision: string) => ({ kind: 'ReplicaSet', metadata: { name: `web-${revision}`, annotations: { 'deployment.kubernetes.io/revision': revision } }, spec: { template: template(image, `h${revision}`) } })

it('puts the same of many members together, newest first, and knows the present one', () => {
  const workload = { kind: 'Deployment', metadata: { name: 'web' }, spec: { template: template('nginx:2') } }
  const found = revisions(workload, [
    { member: 'a', set: set('nginx:1', '1') },
    { member: 'a', set: set('nginx:2', '2') },
    { member: 'b', set: set('nginx:1', '1') },
  ])
  expect(found.map((one) => [one.images[0], one.members.join(), one.current])).toEqual([['nginx:2', 'a', true], ['nginx:1', 'a,b', false]])
  expect(JSON.stringify(found)).not.toContain('pod-template-hash')
})
