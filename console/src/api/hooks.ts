// What pages use to see the server.

import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { ApiError, call } from './http'
import { type Live, releaseLive, shareLive, type Snapshot, type Source } from './live'
import type { Objects } from './generated'
import { type At, type Known, path, type Place, type Query, type Resource } from './paths'
import type { KObject, Of } from './types'

const NOTHING: Snapshot = { entries: [], loaded: false, live: false, at: 0, remaining: 0, hasMore: false, loadingMore: false }
const nothing = () => NOTHING
const ignore = () => () => {}

/** A live list; `null` looks at nothing. */
export function useLive(source: Source | null): { snapshot: Snapshot; live: Live | null } {
  const key = source ? JSON.stringify(source) : ''
  // The source is rebuilt on every render; only what it says counts.
  const live = useMemo(() => (source ? shareLive(source) : null), [key])
  const subscribe = useCallback(
    (listener: () => void) => {
      if (!live || !source) return ignore()
      const leave = live.subscribe(listener)
      return () => {
        leave()
        releaseLive(source)
      }
    },
    [live],
  )
  const snapshot = useSyncExternalStore(subscribe, live ? live.snapshot : nothing)
  return { snapshot, live }
}

export interface ListResult<Item = KObject> extends Snapshot {
  items: Item[]
}

export function useList<K extends keyof Objects>(place: Place | null, resource: Known<K>, at?: At, query?: Query): ListResult<Of<K>>
export function useList(place: Place | null, resource: Resource, at?: At, query?: Query): ListResult
export function useList(place: Place | null, resource: Resource, at: At = {}, query: Query = {}): ListResult {
  const { snapshot } = useLive(place ? { url: path(place, resource, at, query) } : null)
  const items = useMemo(() => snapshot.entries.map((entry) => entry.object), [snapshot.entries])
  return useMemo(() => ({ ...snapshot, items }), [snapshot, items])
}

export interface OneResult<Item = KObject> {
  object?: Item
  error?: ApiError
  loaded: boolean
  live: boolean
  at: number
}

export function useOne<K extends keyof Objects>(place: Place | null, resource: Known<K>, at: At): OneResult<Of<K>>
export function useOne(place: Place | null, resource: Resource, at: At): OneResult
export function useOne(place: Place | null, resource: Resource, at: At): OneResult {
  const { snapshot } = useLive(place && at.name ? { url: path(place, resource, at), single: true } : null)
  return { object: snapshot.entries[0]?.object, error: snapshot.error, loaded: snapshot.loaded, live: snapshot.live, at: snapshot.at }
}

export interface Fetched<T> {
  value?: T
  error?: ApiError
  loading: boolean
  again: () => void
}

/** Something fetched once; `null` fetches nothing. */
export function useFetched<T>(key: string | null, fetcher: (signal: AbortSignal) => Promise<T>): Fetched<T> {
  const [state, setState] = useState<{ key: string | null; value?: T; error?: ApiError }>({ key: null })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    if (key === null) return
    const stop = new AbortController()
    fetcher(stop.signal).then(
      (value) => stop.signal.aborted || setState({ key, value }),
      (error) => stop.signal.aborted || setState({ key, error: ApiError.of(error) }),
    )
    return () => stop.abort()
  }, [key, turn])
  const again = useCallback(() => setTurn((count) => count + 1), [])
  const mine = state.key === key
  return { value: mine ? state.value : undefined, error: mine ? state.error : undefined, loading: key !== null && !mine, again }
}

export function useGet<T = KObject>(url: string | null): Fetched<T> {
  return useFetched<T>(url, (signal) => call<T>(url ?? '', { signal }))
}
