import { describe, expect, it } from 'vitest'
import type { KObject } from '../api/types'
import { DECISION } from './decision'
import { bindingName, buildTree, laneHealth, obstacle, podSelector } from './tree'

const ready = (status: string, message = '') => ({ conditions: [{ type: 'Ready', status, reason: 'R', message }] })
const cluster = (name: string, status = 'True', message = ''): KObject => ({ metadata: { name }, spec: {}, status: ready(status, message) })
const work = (name: string, applied = 'True', message = ''): KObject => ({ metadata: { name: 'w', namespace: `karmada-es-${name}` }, status: { conditions: [{ type: 'Applied', status: applied, message }] } })
const binding = (more: object = {}, told: object[] = [{ clusterName: 'm1', applied: true, health: 'Healthy', status: { readyReplicas: 2 } }]): KObject => ({
  metadata: { name: 'web-deployment', annotations: {} }, spec: { clusters: [{ name: 'm1', replicas: 2 }], ...more }, status: { aggregatedStatus: told },
})
const template: KObject = { kind: 'Deployment', metadata: { name: 'web' } }
const none = new Map<string, KObject[]>()
const pod = (reason: string, message: string): KObject => ({ metadata: { name: 'web-1' }, status: { phase: 'Pending', containerStatuses: [{ state: { waiting: { reason, message } } }] } })

describe('the first obstacle', () => {
  const cases: [string, Parameters<typeof buildTree>[0], string, string][] = [
    ['nobody claims it', { template, works: [], clusters: [] }, 'warn', 'tree.nopolicy'],
    ['claimed but not bound', { template: { ...template, metadata: { name: 'web', annotations: { 'propagationpolicy.karmada.io/name': 'p' } } }, works: [], clusters: [] }, 'busy', 'tree.unbound'],
    ['held back from scheduling', { template, binding: binding({ suspension: { scheduling: true } }), works: [], clusters: [] }, 'warn', 'tree.suspended.scheduling'],
    ['member not ready', { template, binding: binding(), works: [work('m1')], clusters: [cluster('m1', 'False', 'no route')] }, 'bad', 'tree.member'],
    ['member gone', { template, binding: binding(), works: [work('m1')], clusters: [] }, 'bad', 'tree.gone'],
    ['work refused', { template, binding: binding(), works: [work('m1', 'False', 'conflict')], clusters: [cluster('m1')] }, 'bad', 'tree.refused'],
    ['work not there yet', { template, binding: binding(), works: [], clusters: [cluster('m1')] }, 'busy', 'tree.applying'],
    ['unhealthy', { template, binding: binding({}, [{ clusterName: 'm1', applied: true, health: 'Unhealthy' }]), works: [work('m1')], clusters: [cluster('m1')] }, 'warn', 'tree.unhealthy'],
    ['rolling out', { template, binding: binding({}, [{ clusterName: 'm1', applied: true, health: 'Unhealthy', status: { readyReplicas: 9 } }]), works: [work('m1')], clusters: [cluster('m1')] }, 'busy', 'tree.rolling'],
    ['all well', { template, binding: binding(), works: [work('m1')], clusters: [cluster('m1')] }, 'ok', 'tree.well'],
  ]
  it.each(cases)('%s', (_, ingredients, tone, word) => expect(obstacle(buildTree(ingredients), none)).toMatchObject({ tone, word }))

  it('a decision without a cluster comes before everything after it', () => {
    const undecided = binding({ clusters: [] })
    undecided.metadata.annotations = { [DECISION]: JSON.stringify({ at: '', generation: 1, error: ['NoClusterFit', '0/3 clusters are available'] }) }
    expect(obstacle(buildTree({ template, binding: undecided, works: [], clusters: [] }), none)).toMatchObject({ word: 'tree.unscheduled', hint: 'tree.hint.nofit', values: { message: '0/3 clusters are available' } })
  })

  it('the worst cluster is told first, whatever its place', () => {
    const two = binding({ clusters: [{ name: 'm1', replicas: 1 }, { name: 'm2', replicas: 1 }] })
    const tree = buildTree({ template, binding: two, works: [work('m2', 'False', 'denied')], clusters: [cluster('m1'), cluster('m2')] })
    expect(obstacle(tree, none)).toMatchObject({ tone: 'bad', cluster: 'm2', values: { why: 'denied' } })
  })

  it('a broken pod is named with its reason', () => {
    const tree = buildTree({ template, binding: binding(), works: [work('m1')], clusters: [cluster('m1')] })
    const pods = new Map([['m1', [pod('ImagePullBackOff', 'no such image')]]])
    expect(obstacle(tree, pods)).toMatchObject({ tone: 'bad', word: 'tree.pod', values: { pod: 'web-1', why: 'ImagePullBackOff: no such image' } })
    expect(laneHealth(tree.lanes[0]!, pods.get('m1'))).toMatchObject({ tone: 'bad', word: 'ImagePullBackOff' })
  })
})

it('clusters that are being left have a lane until they are', () => {
  const tree = buildTree({ template, binding: binding({ gracefulEvictionTasks: [{ fromCluster: 'm9', reason: 'TaintUntolerated' }] }), works: [], clusters: [cluster('m1'), cluster('m9')] })
  expect(tree.lanes.map((lane) => [lane.cluster, lane.evicting])).toEqual([['m1', undefined], ['m9', 'TaintUntolerated']])
})

it('pods are found by all parts of the selector', () => {
  const spec = { selector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }, { key: 'x', operator: 'DoesNotExist' }] } }
  expect(podSelector({ ...template, spec })).toBe('app=web,tier in (a,b),!x')
  expect(podSelector({ kind: 'ConfigMap', metadata: { name: 'c' } })).toBeUndefined()
})

it('bindings are found by name', () => expect(bindingName('ClusterRole', 'system:x')).toBe('system.x-clusterrole'))
