import { expect, it } from 'vitest'
import type { KObject } from '../api/types'
import { DECISION, decisionOf } from './decision'

const binding = (annotation?: unknown, rest: object = {}): KObject => ({
  metadata: { name: 'web-deployment', annotations: annotation === undefined ? {} : { [DECISION]: typeof annotation === 'string' ? annotation : JSON.stringify(annotation) } },
  spec: { clusters: [{ name: 'm1', replicas: 2 }] },
  ...rest,
})

it('the record is read with its reasons', () => {
  const decision = decisionOf(
    binding({ at: '2026-01-01T00:00:00Z', generation: 1, trigger: 'placement', chosen: [['m1', 2, 40], ['m2', 1]], refused: { 'TaintToleration: untolerated taint a=b:NoSchedule': ['m3', 'm4'] }, skipped: [['near', '0/2']] }),
  )
  expect(decision?.chosen).toEqual([{ cluster: 'm1', replicas: 2, room: 40 }, { cluster: 'm2', replicas: 1, room: undefined }])
  expect(decision?.refused).toEqual([{ step: 'TaintToleration', sentence: 'untolerated taint a=b:NoSchedule', clusters: ['m3', 'm4'] }])
  expect(decision?.skipped).toEqual([{ affinity: 'near', why: '0/2' }])
})

it.each([['not json'], ['null'], ['{"chosen": 7}'], ['{"refused": {"x": 1}, "chosen": "y"}']])('a spoilt record %s is no reason to fail', (text) => {
  expect(decisionOf(binding(text))?.chosen).toEqual([{ cluster: 'm1', replicas: 2 }])
})

it('without a record the condition tells why there is none', () => {
  const status = { conditions: [{ type: 'Scheduled', status: 'False', reason: 'NoClusterFit', message: '0/3 clusters are available' }] }
  expect(decisionOf(binding(undefined, { spec: {}, status }))?.error).toEqual({ reason: 'NoClusterFit', message: '0/3 clusters are available' })
})
