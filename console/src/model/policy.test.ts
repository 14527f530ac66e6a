import { describe, expect, it } from 'vitest'
import type { KObject } from '../api/types'
import { claimedBy, clusterFits, names, placementText, selects } from './policy'

const cluster = (name: string, spec: object = {}, labels: Record<string, string> = {}): KObject => ({ metadata: { name, labels }, spec })
const web: KObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop', labels: { app: 'web' } } }

describe('label selectors', () => {
  it.each([
    [{ matchLabels: { a: '1' } }, true], [{ matchLabels: { a: '2' } }, false], [undefined, true],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, true], [{ matchExpressions: [{ key: 'b', operator: 'NotIn', values: ['x'] }] }, true],
    [{ matchExpressions: [{ key: 'b', operator: 'Exists' }] }, false], [{ matchExpressions: [{ key: 'b', operator: 'DoesNotExist' }] }, true], [{ matchExpressions: [{ key: 'a', operator: 'Odd' }] }, false],
  ])('%j', (selector, wanted) => expect(selects(selector, { a: '1' })).toBe(wanted))
})

describe('resource selectors', () => {
  it.each([
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, 'shop', true], [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'api' }, 'shop', false],
    [{ apiVersion: 'apps/v1', kind: 'Deployment' }, 'other', false], [{ apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { app: 'web' } } }, undefined, true],
    [{ apiVersion: 'v1', kind: 'Service' }, 'shop', false], [{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop' }, undefined, true],
  ])('%j in %s', (selector, namespace, wanted) => expect(names(selector, web, namespace)).toBe(wanted))
})

describe('placements', () => {
  const clusters = [cluster('eu', { region: 'eu' }, { env: 'prod' }), cluster('us', { region: 'us', taints: [{ key: 'gpu', effect: 'NoSchedule' }] }), cluster('ap', { region: 'ap' })]
  const fitting = (placement: object) => clusterFits(placement, clusters).filter((one) => one.fits).map((one) => one.cluster.metadata.name)
  it.each([
    [{}, ['eu', 'ap']],
    [{ clusterAffinity: { clusterNames: ['eu', 'us'] } }, ['eu']],
    [{ clusterAffinity: { clusterNames: ['eu', 'us'] }, clusterTolerations: [{ key: 'gpu', operator: 'Exists' }] }, ['eu', 'us']],
    [{ clusterAffinity: { exclude: ['eu'] } }, ['ap']],
    [{ clusterAffinity: { labelSelector: { matchLabels: { env: 'prod' } } } }, ['eu']],
    [{ clusterAffinity: { fieldSelector: { matchExpressions: [{ key: 'region', operator: 'NotIn', values: ['eu'] }] } } }, ['ap']],
    [{ clusterAffinities: [{ affinityName: 'a', clusterNames: ['eu'] }, { affinityName: 'b', clusterNames: ['ap'] }] }, ['eu', 'ap']],
  ])('%j may choose %j', (placement, wanted) => expect(fitting(placement)).toEqual(wanted))
  it('are told in a line', () => expect(placementText({ clusterAffinity: { clusterNames: ['a', 'b'] }, spreadConstraints: [{ spreadByField: 'region', minGroups: 2 }] })).toBe('a, b · region 2–∞'))
})

it('bindings know their policy by namespace and name', () => {
  const bound = (annotations: Record<string, string>): KObject => ({ metadata: { name: 'b', annotations } })
  const mine = bound({ 'propagationpolicy.karmada.io/name': 'p', 'propagationpolicy.karmada.io/namespace': 'shop' })
  const other = bound({ 'propagationpolicy.karmada.io/name': 'p', 'propagationpolicy.karmada.io/namespace': 'x' })
  const global = bound({ 'clusterpropagationpolicy.karmada.io/name': 'p' })
  expect(claimedBy({ metadata: { name: 'p', namespace: 'shop' } }, [mine, other, global])).toEqual([mine])
  expect(claimedBy({ metadata: { name: 'p' } }, [mine, other, global])).toEqual([global])
})
