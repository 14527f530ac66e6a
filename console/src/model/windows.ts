// When a lease is open, over a week.

export const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const

export interface Window {
  start: string
  end: string
  days?: string[]
  timeZone?: string
}

/** A stretch of a day, in minutes from midnight. */
export interface Stretch {
  from: number
  to: number
}

const DAY = 24 * 60

function minutes(text: string): number | undefined {
  const match = /^(\d{1,2}):(\d\d)$/.exec(text.trim())
  if (!match) return undefined
  const value = Number(match[1]) * 60 + Number(match[2])
  return value <= DAY ? value : undefined
}

function isOn(days: string[] | undefined, day: number): boolean {
  if (!days?.length) return true
  const short = DAYS[day]?.toLowerCase() ?? ''
  return days.some((name) => name.toLowerCase().startsWith(short))
}

/** For each day of the week, Monday first, when the windows are open. No windows means always. */
export function week(windows: Window[] | undefined): Stretch[][] {
  const out: Stretch[][] = DAYS.map(() => [])
  if (!windows?.length) return out.map(() => [{ from: 0, to: DAY }])
  for (const window of windows) {
    const from = minutes(window.start)
    const to = minutes(window.end)
    if (from === undefined || to === undefined) continue
    for (let day = 0; day < 7; day += 1) {
      if (!isOn(window.days, day)) continue
      if (from <= to) out[day]?.push({ from, to })
      else {
        // Over midnight: the rest belongs to the next day.
        out[day]?.push({ from, to: DAY })
        if (to > 0) out[(day + 1) % 7]?.push({ from: 0, to })
      }
    }
  }
  return out.map(merged)
}

function merged(stretches: Stretch[]): Stretch[] {
  const out: Stretch[] = []
  for (const next of [...stretches].sort((a, b) => a.from - b.from)) {
    const last = out[out.length - 1]
    if (last && next.from <= last.to) last.to = Math.max(last.to, next.to)
    else out.push({ ...next })
  }
  return out
}

export function clock(minute: number): string {
  return `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
}

/** Hours a week. */
export function hours(stretches: Stretch[][]): number {
  return Math.round(stretches.flat().reduce((sum, one) => sum + one.to - one.from, 0) / 6) / 10
}
