import { expect, it } from 'vitest'
import { differences } from './differences'

const deployment = (replicas: number, image: string, more: object = {}) => ({ kind: 'Deployment', metadata: { name: 'web', labels: { app: 'web' } }, spec: { replicas, template: { spec: { containers: [{ name: 'main', image, ...more }] } } } })

it('tells what was divided or overridden, and not what a member fills in', () => {
  const found = differences(deployment(6, 'nginx:1'), [
    { member: 'a', object: deployment(6, 'mirror/nginx:1', { terminationMessagePath: '/dev/null' }) },
    { member: 'b', object: deployment(2, 'nginx:1') },
  ])
  expect(found.map((one) => one.path)).toEqual(['spec/replicas', 'spec/template/spec/containers/[main]/image'])
  expect(found[0]).toEqual({ path: 'spec/replicas', template: '6', members: { a: '6', b: '2' } })
})

it('equal objects do not differ', () => expect(differences(deployment(1, 'x'), [{ member: 'a', object: deployment(1, 'x') }])).toEqual([]))
