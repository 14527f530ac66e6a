// Health of things at one glance, from what they say about themselves.

import type { Condition, KObject, Meta, Of } from '../api/types'
import { quantity } from './quantity'

export type Tone = 'ok' | 'warn' | 'bad' | 'idle' | 'busy'

export interface Health {
  tone: Tone
  /** A word for it, as the object or its controller uses it. */
  word: string
  /** Why, when it is not well. */
  why?: string
}

interface Conditioned {
  metadata: Meta
  status?: { conditions?: Condition[] }
}

export function condition(object: Conditioned | undefined, type: string): Condition | undefined {
  return object?.status?.conditions?.find((one) => one.type === type)
}

export function clusterHealth(cluster: Of<'Cluster'>): Health {
  if (cluster.metadata.deletionTimestamp) return { tone: 'busy', word: 'Terminating' }
  const ready = condition(cluster, 'Ready')
  if (!ready) return { tone: 'idle', word: 'Unknown', why: 'no report yet' }
  const why = [ready.reason, ready.message].filter(Boolean).join(': ')
  if (ready.status === 'True') return isCordoned(cluster) ? { tone: 'warn', word: 'Cordoned' } : { tone: 'ok', word: 'Ready' }
  return ready.status === 'False' ? { tone: 'bad', word: 'NotReady', why } : { tone: 'bad', word: 'Unknown', why }
}

export const CORDON = 'cluster.karmada.io/unschedulable'

export function isCordoned(cluster: Of<'Cluster'>): boolean {
  return (cluster.spec?.taints ?? []).some((taint) => taint.key === CORDON)
}

export interface Usage {
  used: number
  total: number
}

/** What is asked for and what there is, of one resource of a member. */
export function clusterUsage(cluster: Of<'Cluster'>, resource: string): Usage {
  const summary = cluster.status?.resourceSummary
  return {
    used: quantity(summary?.allocated?.[resource]) + quantity(summary?.allocating?.[resource]),
    total: quantity(summary?.allocatable?.[resource]),
  }
}

/** The word kubectl would show for a pod. */
export function podHealth(pod: Of<'Pod'>): Health {
  const status: NonNullable<typeof pod.status> = pod.status ?? {}
  if (pod.metadata.deletionTimestamp) return { tone: 'busy', word: 'Terminating' }
  for (const container of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
    const waiting = container.state?.waiting
    const ended = container.state?.terminated
    if (waiting?.reason && !['ContainerCreating', 'PodInitializing'].includes(waiting.reason)) {
      return { tone: 'bad', word: waiting.reason, why: waiting.message }
    }
    if (ended && ended.exitCode !== 0) return { tone: 'bad', word: ended.reason ?? 'Error', why: ended.message ?? `exit code ${ended.exitCode}` }
  }
  if (status.phase === 'Running') {
    const ready = condition(pod, 'Ready')
    return ready?.status === 'False' ? { tone: 'warn', word: 'NotReady', why: ready.message } : { tone: 'ok', word: 'Running' }
  }
  if (status.phase === 'Succeeded') return { tone: 'idle', word: 'Completed' }
  if (status.phase === 'Failed') return { tone: 'bad', word: status.reason ?? 'Failed', why: status.message }
  const scheduled = condition(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return { tone: 'warn', word: 'Pending', why: scheduled.message }
  return { tone: 'busy', word: status.phase ?? 'Pending' }
}

/** How ready a workload says it is; undefined for kinds without replicas. */
export function replicas(object: KObject | undefined): { ready: number; wanted: number } | undefined {
  const status = object?.status ?? {}
  switch (object?.kind) {
    case 'Deployment':
    case 'StatefulSet':
    case 'ReplicaSet':
      return { ready: status.readyReplicas ?? 0, wanted: object.spec?.replicas ?? 1 }
    case 'DaemonSet':
      return { ready: status.numberReady ?? 0, wanted: status.desiredNumberScheduled ?? 0 }
    case 'Job':
      return { ready: status.succeeded ?? 0, wanted: object.spec?.completions ?? object.spec?.parallelism ?? 1 }
    default:
      return undefined
  }
}

/** The tone of a word in a table cell, such as a phase. */
export function toneOf(word: string): Tone | undefined {
  if (/^(Ready|Running|Active|True|Bound|Healthy|Available|Succeeded|Established|Applied)$/.test(word)) return 'ok'
  if (/^(Pending|Inactive|Paused|Terminating|ContainerCreating|Progressing|Released|SchedulingDisabled)$/.test(word)) return 'warn'
  if (/(BackOff|^Err|Error|Failed|NotReady|Unhealthy|^Evicted|^OOM|Lost|Invalid)/.test(word)) return 'bad'
  if (/^(Completed|Complete|Unknown|None)$/.test(word)) return 'idle'
  return undefined
}
