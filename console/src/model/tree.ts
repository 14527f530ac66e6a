// From a template to its pods: one lane for each cluster, and the first thing in the way.

import type { KObject, Of } from '../api/types'
import type { Word } from '../i18n'
import { aggregated, type Aggregated } from './binding'
import { type Decision, decisionOf } from './decision'
import { clusterHealth, condition, type Health, podHealth, type Tone } from './health'

export interface Lane {
  cluster: string
  replicas: number
  room?: number
  /** The member; missing when it left. */
  member?: Of<'Cluster'>
  work?: Of<'Work'>
  told?: Aggregated
  /** Why the workload is leaving. */
  evicting?: string
}

export interface Tree {
  template?: KObject
  binding?: Of<'ResourceBinding'>
  decision?: Decision
  lanes: Lane[]
}

export interface Ingredients {
  template?: KObject
  binding?: Of<'ResourceBinding'>
  works: Of<'Work'>[]
  clusters: Of<'Cluster'>[]
}

export function clusterOfWork(work: Of<'Work'>): string {
  return (work.metadata.namespace ?? '').replace(/^karmada-es-/, '')
}

export function buildTree({ template, binding, works, clusters }: Ingredients): Tree {
  const decision = decisionOf(binding)
  const members = new Map(clusters.map((member) => [member.metadata.name, member]))
  const byCluster = new Map(works.map((work) => [clusterOfWork(work), work]))
  const told = new Map(aggregated(binding).map((item) => [item.clusterName, item]))
  const rooms = new Map((decision?.chosen ?? []).map((chosen) => [chosen.cluster, chosen.room]))
  const targets = binding?.spec?.clusters ?? []
  const leaving = binding?.spec?.gracefulEvictionTasks ?? []
  const lane = (name: string, replicas: number, evicting?: string): Lane => ({
    cluster: name, replicas, room: rooms.get(name), member: members.get(name), work: byCluster.get(name), told: told.get(name), evicting,
  })
  const lanes = targets.map((target) => lane(target.name, target.replicas ?? 0))
  for (const task of leaving) {
    if (!lanes.some((one) => one.cluster === task.fromCluster)) lanes.push(lane(task.fromCluster, 0, task.message || task.reason || 'evicting'))
  }
  return { template, binding, decision, lanes }
}

/** How one cluster fares, by the nearest thing that tells. */
export function laneHealth(lane: Lane, pods: KObject[] = []): Health {
  if (lane.evicting) return { tone: 'busy', word: 'Leaving', why: lane.evicting }
  if (!lane.member) return { tone: 'bad', word: 'Gone' }
  const member = clusterHealth(lane.member)
  if (member.tone === 'bad') return { tone: 'bad', word: member.word, why: member.why }
  const work = workHealth(lane.work)
  if (work.tone !== 'ok') return work
  const sick = pods.map(podHealth).find((health) => health.tone === 'bad')
  if (sick) return sick
  if (lane.told?.health === 'Unhealthy') return { tone: 'warn', word: 'Unhealthy' }
  if (lane.told?.health === 'Healthy') return { tone: 'ok', word: 'Healthy' }
  return { tone: 'busy', word: 'Applied' }
}

export function workHealth(work: Of<'Work'> | undefined): Health {
  if (!work) return { tone: 'busy', word: 'Unwritten' }
  if (work.metadata.deletionTimestamp) return { tone: 'busy', word: 'Terminating' }
  const held = condition(work, 'Dispatching')
  if (held?.status === 'False') return { tone: 'warn', word: 'Suspended', why: held.message }
  const applied = condition(work, 'Applied')
  if (!applied) return { tone: 'busy', word: 'Applying' }
  return applied.status === 'True' ? { tone: 'ok', word: 'Applied' } : { tone: 'bad', word: 'NotApplied', why: applied.message }
}

export interface Obstacle {
  tone: Tone
  word: Word
  values?: Record<string, string | number>
  /** What to do about it. */
  hint?: Word
  /** The lane to look at. */
  cluster?: string
}

/** The first thing that keeps the template from running where it should, or that nothing does. */
export function obstacle(tree: Tree, pods: ReadonlyMap<string, KObject[]>): Obstacle {
  const { template, binding, decision } = tree
  if (template?.metadata.deletionTimestamp) return { tone: 'busy', word: 'tree.deleting' }
  if (!binding) return withoutBinding(template)
  if (binding.spec?.suspension?.scheduling) return { tone: 'warn', word: 'tree.suspended.scheduling', hint: 'tree.suspended.hint' }
  if (decision?.error) return { tone: 'bad', word: 'tree.unscheduled', values: { message: decision.error.message }, hint: hintFor(decision.error.reason) }
  if (tree.lanes.length === 0) return { tone: 'busy', word: 'tree.deciding' }
  if (binding.spec?.suspension?.dispatching) return { tone: 'warn', word: 'tree.suspended.dispatching', hint: 'tree.suspended.hint' }
  const found = tree.lanes.map((lane) => laneObstacle(lane, pods.get(lane.cluster) ?? [])).filter((one) => one !== undefined)
  const worst = (['bad', 'warn', 'busy'] as Tone[]).map((tone) => found.find((one) => one.tone === tone)).find(Boolean)
  if (worst) return worst
  return { tone: 'ok', word: 'tree.well', values: { n: tree.lanes.length, replicas: tree.lanes.reduce((sum, lane) => sum + lane.replicas, 0) } }
}

function withoutBinding(template: KObject | undefined): Obstacle {
  const notes = template?.metadata.annotations ?? {}
  const policy = notes['propagationpolicy.karmada.io/name'] ?? notes['clusterpropagationpolicy.karmada.io/name']
  if (policy) return { tone: 'busy', word: 'tree.unbound', values: { policy } }
  return { tone: 'warn', word: 'tree.nopolicy', hint: 'tree.nopolicy.hint' }
}

function hintFor(reason: string): Word | undefined {
  switch (reason) {
    case 'NoClusterFit':
      return 'tree.hint.nofit'
    case 'Unschedulable':
      return 'tree.hint.room'
    case 'QuotaExceeded':
      return 'tree.hint.quota'
    default:
      return undefined
  }
}

function laneObstacle(lane: Lane, pods: KObject[]): Obstacle | undefined {
  const { cluster } = lane
  if (lane.evicting) return { tone: 'busy', word: 'tree.evicting', values: { cluster, why: lane.evicting }, cluster }
  if (!lane.member) return { tone: 'bad', word: 'tree.gone', values: { cluster }, cluster }
  const member = clusterHealth(lane.member)
  if (member.tone === 'bad') return { tone: 'bad', word: 'tree.member', values: { cluster, why: member.why ?? member.word }, hint: 'tree.member.hint', cluster }
  const work = workHealth(lane.work)
  if (work.tone === 'bad') return { tone: 'bad', word: 'tree.refused', values: { cluster, why: work.why ?? '' }, hint: 'tree.refused.hint', cluster }
  if (work.tone === 'warn') return { tone: 'warn', word: 'tree.suspended.dispatching', hint: 'tree.suspended.hint', cluster }
  if (work.tone === 'busy') return { tone: 'busy', word: 'tree.applying', values: { cluster }, cluster }
  return podObstacle(lane, pods)
}

function podObstacle(lane: Lane, pods: KObject[]): Obstacle | undefined {
  const { cluster } = lane
  for (const wanted of ['bad', 'warn'] as Tone[]) {
    for (const pod of pods) {
      const health = podHealth(pod)
      if (health.tone !== wanted) continue
      const why = health.why ? `${health.word}: ${health.why}` : health.word
      return { tone: wanted, word: 'tree.pod', values: { cluster, pod: pod.metadata.name, why }, hint: health.word === 'Pending' ? 'tree.pod.pending' : 'tree.pod.hint', cluster }
    }
  }
  if (lane.told?.health === 'Unhealthy') {
    const ready = readyOf(lane) ?? 0
    // Old pods may be ready while new ones come: then it is the change that is not done.
    if (lane.replicas > 0 && ready >= lane.replicas) return { tone: 'busy', word: 'tree.rolling', values: { cluster }, cluster }
    return { tone: 'warn', word: 'tree.unhealthy', values: { cluster, ready, wanted: lane.replicas }, cluster }
  }
  if (lane.told?.health !== 'Healthy') return { tone: 'busy', word: 'tree.waiting', values: { cluster }, cluster }
  return undefined
}

/** Ready replicas as the member last told. */
export function readyOf(lane: Lane): number | undefined {
  const status = lane.told?.status
  const value = status?.readyReplicas ?? status?.numberReady ?? status?.succeeded
  return value === undefined ? undefined : Number(value)
}

/** The selector of the pods of a workload, as the API takes it. */
export function podSelector(template: KObject | undefined): string | undefined {
  if (template?.kind === 'Job') return `batch.kubernetes.io/job-name=${template.metadata.name}`
  const selector = template?.spec?.selector
  if (!['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'].includes(template?.kind ?? '') || !selector) return undefined
  const parts = Object.entries((selector.matchLabels ?? {}) as Record<string, string>).map(([key, value]) => `${key}=${value}`)
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    if (operator === 'In') parts.push(`${key} in (${values.join(',')})`)
    else if (operator === 'NotIn') parts.push(`${key} notin (${values.join(',')})`)
    else parts.push(operator === 'Exists' ? key : `!${key}`)
  }
  return parts.length ? parts.join(',') : undefined
}

/** The name of the binding of a template. */
export function bindingName(kind: string, name: string): string {
  return `${name.replaceAll(':', '.')}-${kind}`.toLowerCase()
}
