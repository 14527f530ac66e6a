// Descriptions of kinds (OpenAPI v3), asked for once per group and version of a place.

import type { Schemas } from '../model/schema'
import { ApiError, call } from './http'
import { base, type Place } from './paths'

const known = new Map<string, Promise<Schemas | null>>()

export function schemasOf(place: Place, group: string, version: string): Promise<Schemas | null> {
  const url = `${base(place)}/openapi/v3/${group ? `apis/${group}` : 'api'}/${version}`
  let found = known.get(url)
  if (!found) {
    found = call<{ components?: { schemas?: Schemas } }>(url).then(
      (document) => document.components?.schemas ?? null,
      // Who may not read them writes without help; a hub that could not answer is asked again.
      (problem) => {
        const { code } = ApiError.of(problem)
        if (code < 400 || code >= 500) known.delete(url)
        return null
      },
    )
    known.set(url, found)
  }
  return found
}

export function forgetSchemas(): void {
  known.clear()
}
