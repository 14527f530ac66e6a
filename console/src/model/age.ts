// Times as people read them.

/** Seconds as kubectl shows an age. */
export function span(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds))
  if (s < 120) return `${s}s`
  const m = Math.floor(s / 60)
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`
  if (m < 180) return `${m}m`
  const h = Math.floor(m / 60)
  if (h < 8) return m % 60 ? `${h}h${m % 60}m` : `${h}h`
  if (h < 48) return `${h}h`
  const d = Math.floor(h / 24)
  if (d < 8) return h % 24 ? `${d}d${h % 24}h` : `${d}d`
  if (d < 730) return `${d}d`
  return `${Math.floor(d / 365)}y`
}

export function age(since: string | undefined, now: number): string {
  if (!since) return '—'
  const then = Date.parse(since)
  return Number.isNaN(then) ? '—' : span((now - then) / 1000)
}
