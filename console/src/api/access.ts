// What the user may do, asked of the server once and remembered for a minute.

import { useEffect, useState } from 'react'
import { call } from './http'
import { base, type Place } from './paths'

export interface Act {
  verb: string
  group?: string
  resource: string
  subresource?: string
  namespace?: string
  name?: string
}

const KEEP_MS = 60_000
const known = new Map<string, { at: number; answer: Promise<boolean> }>()

export function may(place: Place, act: Act): Promise<boolean> {
  const key = JSON.stringify([place, act])
  const before = known.get(key)
  if (before && Date.now() - before.at < KEEP_MS) return before.answer
  // A member's own rules are asked in the member: the proxy passes the question on.
  const answer = call(`${base(place)}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`, {
    method: 'POST',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { group: '', ...act } },
    },
  }).then(
    (review) => review.status?.allowed === true,
    () => false,
  )
  known.set(key, { at: Date.now(), answer })
  return answer
}

/** Undefined until the server answered; show nothing that may be refused before. */
export function useMay(place: Place | null, act: Act | null): boolean | undefined {
  const key = place && act ? JSON.stringify([place, act]) : ''
  const [state, setState] = useState<{ key: string; allowed: boolean }>()
  useEffect(() => {
    if (!place || !act) return
    let stale = false
    may(place, act).then((allowed) => !stale && setState({ key, allowed }))
    return () => {
      stale = true
    }
  }, [key])
  return state?.key === key && key ? state.allowed : undefined
}

export function forgetAccess(): void {
  known.clear()
}
