// Usage over time, gathered while somebody looks: the hub keeps no history of it.

import { useEffect, useState } from 'react'
import { quantity } from '../model/quantity'
import { ApiError, call } from './http'
import type { Loose } from './types'

export interface Sample {
  at: number
  cpu: number
  memory: number
}

export interface Samples {
  list: Sample[]
  error?: ApiError
}

const EVERY_MS = 3000
const MOST = 240
const kept = new Map<string, Sample[]>()

/** What one answer of metrics.k8s.io uses in all: nodes, pods or a single one of them. */
export function usageOf(answer: Loose): { cpu: number; memory: number } {
  const items: Loose[] = answer.items ?? [answer]
  const all = items.flatMap((item) => item.containers ?? [item])
  const sum = (resource: string) => all.reduce((total, one) => total + quantity(one.usage?.[resource]), 0)
  return { cpu: sum('cpu'), memory: sum('memory') }
}

/** Samples of a URL below metrics.k8s.io; `null` takes none. */
export function useSamples(url: string | null): Samples {
  const [state, setState] = useState<Samples>({ list: (url && kept.get(url)) || [] })
  useEffect(() => {
    if (!url) return
    const stop = new AbortController()
    const take = async () => {
      try {
        const sample = { at: Date.now(), ...usageOf(await call(url, { signal: stop.signal })) }
        const list = [...(kept.get(url) ?? []), sample].slice(-MOST)
        kept.set(url, list)
        setState({ list })
      } catch (error) {
        if (!stop.signal.aborted) setState((before) => ({ ...before, error: ApiError.of(error) }))
      }
    }
    void take()
    const timer = setInterval(take, EVERY_MS)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [url])
  return state
}
