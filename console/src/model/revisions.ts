// What a workload was before, as its members still know it.

import type { KObject, Loose } from '../api/types'

export interface Revision {
  /** Members that ran it. */
  members: string[]
  number: number
  template: Loose
  images: string[]
  at?: string
  current: boolean
}

const REVISION = 'deployment.kubernetes.io/revision'
const HASH = 'pod-template-hash'

/** Revisions that differ, newest first; members that ran the same are put together. */
export function revisions(workload: KObject, sets: { member?: string; set: KObject }[]): Revision[] {
  const now = JSON.stringify(plain(workload.spec?.template))
  const found = new Map<string, Revision>()
  for (const { member, set } of sets) {
    const template = plain(set.spec?.template)
    const key = JSON.stringify(template)
    const number = Number(set.metadata.annotations?.[REVISION] ?? 0)
    const known = found.get(key)
    if (known) {
      if (member && !known.members.includes(member)) known.members.push(member)
      known.number = Math.max(known.number, number)
    } else {
      const images = (template?.spec?.containers ?? []).map((one: Loose) => String(one.image ?? ''))
      found.set(key, { members: member ? [member] : [], number, template, images, at: set.metadata.creationTimestamp, current: key === now })
    }
  }
  return [...found.values()].sort((a, b) => b.number - a.number || (b.at ?? '').localeCompare(a.at ?? ''))
}

/** The template without what the controllers of the member put into it, in one order of keys. */
function plain(template: Loose): Loose {
  const copy = sorted(template ?? {}) as Loose
  if (copy.metadata) {
    delete copy.metadata.creationTimestamp
    if (copy.metadata.labels) delete copy.metadata.labels[HASH]
  }
  return copy
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a.localeCompare(b)).map(([key, inner]) => [key, sorted(inner)]))
}
