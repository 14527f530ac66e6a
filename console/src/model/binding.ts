// What a ResourceBinding says: how far its template has come.

import type { Of } from '../api/types'
import { condition, type Health } from './health'

type Told = NonNullable<NonNullable<Of<'ResourceBinding'>['status']>['aggregatedStatus']>[number]

/** What one member tells; its own status is of whatever kind the object is. */
export interface Aggregated extends Omit<Told, 'status'> {
  status?: Record<string, unknown>
}

export function aggregated(binding: Of<'ResourceBinding'> | undefined): Aggregated[] {
  return (binding?.status?.aggregatedStatus ?? []) as Aggregated[]
}

export function bindingHealth(binding: Of<'ResourceBinding'>): Health {
  if (binding.metadata.deletionTimestamp) return { tone: 'busy', word: 'Terminating' }
  const scheduled = condition(binding, 'Scheduled')
  if (scheduled?.status === 'False') return { tone: 'bad', word: 'Unscheduled', why: scheduled.message }
  const targets = binding.spec?.clusters ?? []
  if (!scheduled && targets.length === 0) return { tone: 'busy', word: 'Deciding' }
  const items = aggregated(binding)
  const refused = items.find((item) => !item.applied && item.appliedMessage)
  if (refused) return { tone: 'bad', word: 'NotApplied', why: `${refused.clusterName}: ${refused.appliedMessage}` }
  const applied = condition(binding, 'FullyApplied')
  if (applied?.status === 'False') return { tone: 'warn', word: 'Applying', why: applied.message }
  const sick = items.filter((item) => item.health === 'Unhealthy')
  if (sick.length > 0) return { tone: 'warn', word: 'Unhealthy', why: sick.map((item) => item.clusterName).join(', ') }
  if (items.length < targets.length) return { tone: 'busy', word: 'Applying' }
  return { tone: 'ok', word: 'Healthy' }
}

/** Ready and wanted replicas over all members, for workloads. */
export function bindingReplicas(binding: Of<'ResourceBinding'>): { ready: number; wanted: number } | undefined {
  if (!binding.spec?.replicas) return undefined
  const targets = binding.spec.clusters ?? []
  const wanted = targets.reduce((sum, target) => sum + (target.replicas ?? 0), 0)
  const ready = aggregated(binding).reduce((sum, item) => sum + Number(item.status?.readyReplicas ?? item.status?.numberReady ?? item.status?.succeeded ?? 0), 0)
  return { ready, wanted: wanted || binding.spec.replicas }
}
