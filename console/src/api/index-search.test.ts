import { expect, it } from 'vitest'
import { fuzzy, hitOf, pluralOf } from './index-search'

it.each([['Deployment', 'deployments'], ['Ingress', 'ingresses'], ['NetworkPolicy', 'networkpolicies'], ['Gateway', 'gateways'], ['Box', 'boxes']])('%s is %s in a path', (kind, plural) => {
  expect(pluralOf(kind)).toBe(plural)
})

it.each([['Web API', 'webapi'], ['--x--', 'x'], ["'; drop", 'drop'], ['', '']])('%s is searched as %s', (text, word) => expect(fuzzy(text)).toBe(word))

it('an object of a member is opened in the member, one of the instance in the instance', () => {
  const object = (cluster: string) => ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', annotations: { 'shadow.clusterpedia.io/cluster-name': cluster } } })
  expect(hitOf({ instance: 'fleet' }, [], object('member1'))?.place.member).toBe('member1')
  expect(hitOf({ instance: 'fleet' }, [], object('fleet'))?.place.member).toBeUndefined()
})
