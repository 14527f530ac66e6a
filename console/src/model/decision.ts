// The record of a scheduling decision that the fleet keeps with a binding.

import type { Of } from '../api/types'
import { condition } from './health'

export const DECISION = 'atoll.io/decision'

export interface Chosen {
  cluster: string
  replicas: number
  /** How many more it had room for, if it was asked. */
  room?: number
}

export interface Refusal {
  /** The step that refused, such as `TaintToleration`. */
  step: string
  sentence: string
  clusters: string[]
}

export interface Decision {
  at?: string
  trigger?: string
  chosen: Chosen[]
  refused: Refusal[]
  affinity?: string
  skipped: { affinity: string; why: string }[]
  error?: { reason: string; message: string }
}

/** What the binding tells of its decision; without a record, what its spec and status tell. */
export function decisionOf(binding: Of<'ResourceBinding'> | undefined): Decision | undefined {
  if (!binding) return undefined
  return recorded(binding) ?? fromSpec(binding)
}

function recorded(binding: Of<'ResourceBinding'>): Decision | undefined {
  const text = binding.metadata.annotations?.[DECISION]
  if (!text) return undefined
  try {
    const record = JSON.parse(text)
    return {
      at: record.at,
      trigger: record.trigger,
      chosen: (record.chosen ?? []).map(([cluster, replicas, room]: [string, number, number | null]) => ({ cluster, replicas, room: room ?? undefined })),
      refused: Object.entries(record.refused ?? {}).map(([rule, clusters]) => ({ ...splitRule(rule), clusters: clusters as string[] })),
      affinity: record.affinity || undefined,
      skipped: (record.skipped ?? []).map(([affinity, why]: [string, string]) => ({ affinity, why })),
      error: record.error ? { reason: record.error[0], message: record.error[1] } : undefined,
    }
  } catch {
    // Anybody who may edit the binding may spoil its annotation; the spec still tells most.
    return undefined
  }
}

function fromSpec(binding: Of<'ResourceBinding'>): Decision {
  const scheduled = condition(binding, 'Scheduled')
  return {
    at: binding.status?.lastScheduledTime,
    chosen: (binding.spec?.clusters ?? []).map((target) => ({ cluster: target.name, replicas: target.replicas ?? 0 })),
    refused: [],
    affinity: binding.status?.schedulerObservingAffinityName,
    skipped: [],
    error: scheduled?.status === 'False' ? { reason: scheduled.reason ?? '', message: scheduled.message ?? '' } : undefined,
  }
}

function splitRule(rule: string): { step: string; sentence: string } {
  const at = rule.indexOf(': ')
  return at < 0 ? { step: '', sentence: rule } : { step: rule.slice(0, at), sentence: rule.slice(at + 2) }
}
