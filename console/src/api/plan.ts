// What would move, asked of the hub before anything moves.

import { stringify } from 'yaml'
import { ApiError, call } from './http'
import type { Place } from './paths'
import type { KObject } from './types'

export interface Move {
  subject: string
  before: Record<string, number>
  after: Record<string, number>
  error?: string
}

/** Either a policy that is not saved yet, or a cluster that might be lost. */
export type Change = { policy: KObject } | { without: string }

export async function plan(place: Place, change: Change, signal?: AbortSignal): Promise<Move[]> {
  const body = 'policy' in change ? { policy: stringify(change.policy) } : change
  const answer = await call(`/manage/v1alpha1/instances/${encodeURIComponent(place.instance)}/plan`, { method: 'POST', body, signal })
  return (answer.moves ?? []).map((move: Partial<Move>) => ({ subject: move.subject ?? '', before: move.before ?? {}, after: move.after ?? {}, error: move.error || undefined }))
}

/** Whether the hub is one that cannot plan at all. */
export function isUnplannable(error: ApiError): boolean {
  return error.code === 404 || error.code === 501 || error.code === 405
}
