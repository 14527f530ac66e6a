// Lines of a journal, newest first: new ones come by themselves, older ones are asked for by the time of the oldest here.

/** So many lines are kept besides what was paged back to; a page that stays open would grow for ever otherwise. */
export const LIVE = 5000

export interface Journal<Line extends { time: string }> {
  lines: Line[]
  /** Whether the oldest line of all is here. */
  ended: boolean
  /** How many lines may be here before the oldest are let go. */
  room: number
}

/** With new lines; the oldest go when there are too many, and can be paged back to. */
export function withNew<Line extends { time: string }>(journal: Journal<Line>, fresh: Line[]): Journal<Line> {
  const lines = [...fresh, ...journal.lines]
  let end = journal.room
  // Pages begin before a time, so lines of the same time stay together.
  while (end < lines.length && lines[end]?.time === lines[end - 1]?.time) end += 1
  return end < lines.length ? { ...journal, lines: lines.slice(0, end), ended: false } : { ...journal, lines }
}

/** With the page that was asked for; it does not fit any more if the oldest lines went meanwhile. */
export function withOlder<Line extends { time: string }>(journal: Journal<Line>, before: string, page: Line[]): Journal<Line> {
  if (journal.lines.at(-1)?.time !== before) return journal
  if (page.length === 0) return { ...journal, ended: true }
  const lines = [...journal.lines, ...page]
  return { lines, ended: false, room: lines.length + LIVE }
}
