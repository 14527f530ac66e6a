// Lists that stay true: list in pages, then watch from there, and start over when history is gone.

import { ApiError, call, lines, open, TABLE } from './http'
import { withQuery } from './paths'
import type { Column, KObject, Loose } from './types'

export interface Entry {
  key: string
  object: KObject
  cells?: Loose[]
}

export interface Snapshot {
  entries: Entry[]
  columns?: Column[]
  /** Whether there has been an answer yet, good or bad. */
  loaded: boolean
  error?: ApiError
  /** Whether changes arrive by themselves. */
  live: boolean
  /** When the server last confirmed what is here. */
  at: number
  /** How many the server has beyond those loaded, if it says; 0 when all are here. */
  remaining: number
  hasMore: boolean
  loadingMore: boolean
}

export interface Source {
  /** Path of the collection with its selectors. */
  url: string
  table?: boolean
  /** The one object to look at: the path is that of the object. */
  single?: boolean
  pageSize?: number
  /** Not everything can be watched: the search index cannot. */
  watch?: boolean
}

const EMPTY: Snapshot = { entries: [], loaded: false, live: false, at: 0, remaining: 0, hasMore: false, loadingMore: false }
const FLUSH_MS = 60
const LINGER_MS = 8000

export class Live {
  private entries = new Map<string, Entry>()
  private touched = new Set<string>()
  private listeners = new Set<() => void>()
  private current: Snapshot = EMPTY
  private stop = new AbortController()
  private more: string | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private failures = 0

  constructor(private source: Source) {
    void this.run()
  }

  snapshot = (): Snapshot => this.current

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  get unused(): boolean {
    return this.listeners.size === 0
  }

  close(): void {
    this.stop.abort()
    clearTimeout(this.timer)
  }

  private get signal(): AbortSignal {
    return this.stop.signal
  }

  private set(change: Partial<Snapshot>): void {
    this.current = { ...this.current, ...change }
    for (const listener of this.listeners) listener()
  }

  private flush = (): void => {
    this.timer = undefined
    this.set({ entries: [...this.entries.values()], at: Date.now() })
  }

  private soon(): void {
    this.timer ??= setTimeout(this.flush, FLUSH_MS)
  }

  private async run(): Promise<void> {
    while (!this.signal.aborted) {
      try {
        const version = await this.list()
        this.failures = 0
        if (this.source.watch === false) return
        await this.watch(version)
      } catch (error) {
        if (this.signal.aborted) return
        const failure = ApiError.of(error, 0, 'Unreachable')
        // What is gone is gone; what is merely out of reach stays on the screen, marked as old.
        if (failure.code === 404 && this.source.single) this.entries.clear()
        this.set({ loaded: true, live: false, error: failure, entries: [...this.entries.values()] })
        if (failure.code === 401 || (failure.code === 403 && this.failures > 2)) return
        this.failures += 1
      }
      await this.pause()
    }
  }

  private pause(): Promise<void> {
    const most = Math.min(15_000, 500 * 2 ** Math.min(this.failures, 5))
    const wait = this.failures === 0 ? 200 : most / 2 + (Math.random() * most) / 2
    return new Promise((resolve) => setTimeout(resolve, wait))
  }

  private async list(): Promise<string> {
    const { url, single, table, pageSize } = this.source
    const page = await call(single || !pageSize ? url : withQuery(url, { limit: pageSize }), this.asks(table))
    this.entries = new Map()
    this.touched = new Set()
    this.take(page)
    const version = page.metadata?.resourceVersion ?? ''
    this.more = single ? undefined : page.metadata?.continue || undefined
    clearTimeout(this.timer)
    this.timer = undefined
    this.set({
      entries: [...this.entries.values()],
      columns: page.columnDefinitions ?? this.current.columns,
      loaded: true,
      error: undefined,
      at: Date.now(),
      remaining: page.metadata?.remainingItemCount ?? 0,
      hasMore: this.more !== undefined,
      loadingMore: false,
    })
    return version
  }

  /** Loads the next page, if there is one and it is not on its way already. */
  loadMore = async (): Promise<void> => {
    if (!this.more || this.current.loadingMore) return
    this.set({ loadingMore: true })
    const token = this.more
    try {
      const page = await call(withQuery(this.source.url, { limit: this.source.pageSize, continue: token }), this.asks(this.source.table))
      if (this.more !== token) return
      this.take(page)
      this.more = page.metadata?.continue || undefined
      this.set({
        entries: [...this.entries.values()],
        remaining: page.metadata?.remainingItemCount ?? 0,
        hasMore: this.more !== undefined,
        loadingMore: false,
      })
    } catch (error) {
      if (this.signal.aborted) return
      this.set({ loadingMore: false, hasMore: false, error: error instanceof ApiError ? error : undefined })
    }
  }

  private asks(table: boolean | undefined) {
    return { accept: table ? TABLE : undefined, signal: this.signal }
  }

  private take(page: Loose): void {
    for (const entry of entriesOf(page, this.source.single)) {
      // A page is as old as the first one; what the watch said since then is newer.
      if (!this.touched.has(entry.key)) this.entries.set(entry.key, entry)
    }
  }

  private async watch(version: string): Promise<void> {
    const { url, single, table } = this.source
    let from = version
    for (;;) {
      const watched = single ? collectionOf(url) : url
      const query = { watch: true, allowWatchBookmarks: true, resourceVersion: from, timeoutSeconds: 280 }
      const response = await open(withQuery(watched, query), this.asks(table))
      this.failures = 0
      this.set({ live: true, error: undefined })
      for await (const line of lines(response)) {
        if (!line) continue
        const event = JSON.parse(line)
        if (event.type === 'ERROR') {
          this.set({ live: false })
          if (event.object?.code === 410) return
          throw new ApiError(event.object?.code ?? 500, event.object?.reason ?? '', event.object?.message ?? 'watch failed')
        }
        from = event.object?.metadata?.resourceVersion ?? from
        this.apply(event)
      }
      this.set({ live: false })
      if (this.signal.aborted) return
    }
  }

  private apply(event: { type: string; object: Loose }): void {
    if (event.type === 'BOOKMARK') {
      this.soon()
      return
    }
    for (const entry of entriesOf(event.object, event.object?.kind !== 'Table')) {
      if (this.more) this.touched.add(entry.key)
      if (event.type === 'DELETED') this.entries.delete(entry.key)
      else this.entries.set(entry.key, entry)
    }
    this.soon()
  }
}

/** The collection of one object, narrowed to it. */
export function collectionOf(url: string): string {
  const [route = '', query] = url.split('?')
  const slash = route.lastIndexOf('/')
  const name = decodeURIComponent(route.slice(slash + 1))
  return withQuery(query ? `${route.slice(0, slash)}?${query}` : route.slice(0, slash), { fieldSelector: `metadata.name=${name}` })
}

function entriesOf(page: Loose, single?: boolean): Entry[] {
  if (page?.kind === 'Table') {
    return (page.rows ?? []).map((row: Loose) => ({ key: keyOf(row.object), object: row.object, cells: row.cells }))
  }
  if (single) return [{ key: keyOf(page), object: page }]
  const version = page.apiVersion
  const kind = typeof page.kind === 'string' ? page.kind.replace(/List$/, '') : undefined
  return (page.items ?? []).map((item: KObject) => ({ key: keyOf(item), object: { apiVersion: version, kind, ...item } }))
}

function keyOf(object: KObject): string {
  const meta = object.metadata
  const where = meta.annotations?.['shadow.clusterpedia.io/cluster-name'] ?? ''
  return meta.uid ? `${where}/${meta.uid}` : `${where}/${meta.namespace ?? ''}/${meta.name}`
}

const shared = new Map<string, Live>()

/** One list for all who look at the same thing. */
export function shareLive(source: Source): Live {
  const key = JSON.stringify(source)
  let live = shared.get(key)
  if (!live) {
    live = new Live(source)
    shared.set(key, live)
  }
  return live
}

/** Ends a list some time after the last one looked at it. */
export function releaseLive(source: Source): void {
  const key = JSON.stringify(source)
  setTimeout(() => {
    const live = shared.get(key)
    if (live?.unused) {
      live.close()
      shared.delete(key)
    }
  }, LINGER_MS)
}

/** Forgets everything, as when somebody else signs in. */
export function dropAll(): void {
  for (const live of shared.values()) live.close()
  shared.clear()
}
