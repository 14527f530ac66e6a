import { expect, it } from 'vitest'
import { fuzzy, hitOf, ordered, pluralOf } from './index-search'

it.each([['Deployment', 'deployments'], ['Ingress', 'ingresses'], ['NetworkPolicy', 'networkpolicies'], ['Gateway', 'gateways'], ['Box', 'boxes']])('%s is %s in a path', (kind, plural) => {
  expect(pluralOf(kind)).toBe(plural)
})

it.each([['Web API', 'webapi'], ['--x--', 'x'], ["'; drop", 'drop'], ['', '']])('%s is searched as %s', (text, word) => expect(fuzzy(text)).toBe(word))

it('an object of a member is opened in the member, one of the instance in the instance', () => {
  const object = (cluster: string) => ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', annotations: { 'shadow.clusterpedia.io/cluster-name': cluster } } })
  expect(hitOf({ instance: 'fleet' }, [], object('member1'))?.place.member).toBe('member1')
  expect(hitOf({ instance: 'fleet' }, [], object('fleet'))?.place.member).toBeUndefined()
})

it('puts the template of that name first and events last', () => {
  const hit = (kind: string, name: string, member?: string) => ({ object: { kind, metadata: { name, namespace: 'default' } }, kind, resource: { group: '', version: 'v1', plural: kind }, place: { instance: 'fleet', member } })
  const hits = [hit('Event', 'web', 'member1'), hit('Pod', 'web-1', 'member1'), hit('Deployment', 'web', 'member1'), hit('Deployment', 'web'), hit('Pod', 'web-1', 'member1'), hit('Service', 'a-web')]
  expect(ordered(hits, 'web').map((one) => `${one.kind} ${one.object.metadata.name} ${one.place.member ?? ''}`)).toEqual(['Deployment web ', 'Deployment web member1', 'Pod web-1 member1', 'Service a-web ', 'Event web member1'])
})
