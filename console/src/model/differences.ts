// In what the objects of members differ from their template.

import type { KObject } from '../api/types'

export interface Difference {
  path: string
  template?: string
  /** Value by member; undefined where the member has none. */
  members: Record<string, string | undefined>
}

const SKIPPED = new Set(['apiVersion', 'kind', 'metadata', 'status'])
const MARKS = /karmada\.io|kubernetes\.io\/revision/

/** Only what the template says counts: what a member fills in by itself is no difference. */
export function differences(template: KObject, members: { member: string; object: KObject }[]): Difference[] {
  const own = leaves(template)
  const theirs = members.map(({ member, object }) => ({ member, values: leaves(object) }))
  const paths = new Set(own.keys())
  // An override may also add what the template does not have.
  for (const { values } of theirs) for (const path of values.keys()) if (/^(data|labels|annotations)\//.test(path)) paths.add(path)
  const out: Difference[] = []
  for (const path of [...paths].sort()) {
    const wanted = own.get(path)
    if (theirs.every(({ values }) => values.get(path) === wanted)) continue
    out.push({ path, template: wanted, members: Object.fromEntries(theirs.map(({ member, values }) => [member, values.get(path)])) })
  }
  return out
}

function leaves(object: KObject): Map<string, string> {
  const out = new Map<string, string>()
  for (const [key, value] of Object.entries(object)) if (!SKIPPED.has(key)) walk(value, key, out)
  for (const part of ['labels', 'annotations'] as const) {
    for (const [key, value] of Object.entries(object.metadata[part] ?? {})) if (!MARKS.test(key)) out.set(`${part}/${key}`, String(value))
  }
  return out
}

function walk(value: unknown, path: string, out: Map<string, string>): void {
  if (value === null || typeof value !== 'object') {
    out.set(path, String(value))
    return
  }
  const inner = Array.isArray(value) ? value.map((one, at) => [named(one) ?? String(at), one] as const) : Object.entries(value)
  for (const [key, one] of inner) walk(one, `${path}/${key}`, out)
}

/** Containers, ports and the like are the same by name, not by place. */
function named(one: unknown): string | undefined {
  const name = one && typeof one === 'object' ? (one as { name?: unknown }).name : undefined
  return typeof name === 'string' ? `[${name}]` : undefined
}
