import type { Loose } from '../api/types'

/** The parts of an object that another one speaks of: what the server added by itself is no difference. */
export function common(wanted: Loose, found: Loose): Loose {
  if (Array.isArray(wanted) && Array.isArray(found)) {
    return found.map((item, index) => (index < wanted.length ? common(wanted[index], item) : item))
  }
  if (isRecord(wanted) && isRecord(found)) {
    return Object.fromEntries(Object.keys(wanted).filter((key) => key in found && key !== 'status').map((key) => [key, common(wanted[key], found[key])]))
  }
  return found
}

function isRecord(value: Loose): value is Record<string, Loose> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
