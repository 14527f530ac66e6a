// Rows of a server-made table: filtering and widths.

import type { Entry } from '../api/live'
import type { Column } from '../api/types'

export const CLUSTER = 'shadow.clusterpedia.io/cluster-name'

/** Words must all occur in name, namespace, labels or a cell; `key=value` looks at labels only. */
export function matches(entry: Entry, words: string[]): boolean {
  if (words.length === 0) return true
  const { name, namespace, labels, annotations } = entry.object.metadata
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)
  const text = [name, namespace ?? '', annotations?.[CLUSTER] ?? '', ...(entry.cells ?? [])].join('\n').toLowerCase()
  return words.every((word) => {
    if (word.startsWith('!')) return word.length === 1 || !text.includes(word.slice(1))
    return word.includes('=') ? pairs.some((pair) => pair.toLowerCase().includes(word)) : text.includes(word)
  })
}

export function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean)
}

/** A grid track for a column, wide enough for most of what is in it. */
export function trackOf(column: Column, index: number, entries: Entry[]): string {
  if (column.format === 'name' || column.name === 'Name') return 'minmax(220px, 2.4fr)'
  let longest = column.name.length + 1
  for (const entry of entries.slice(0, 200)) longest = Math.max(longest, String(entry.cells?.[index] ?? '').length)
  const wide = Math.min(34, Math.max(5, longest))
  const pixels = Math.round(wide * 7.4 + 26)
  return isNarrow(column) ? `${Math.max(70, pixels)}px` : `minmax(${Math.min(pixels, 230)}px, ${Math.max(0.6, wide / 16).toFixed(2)}fr)`
}

export function isAge(column: Column): boolean {
  return column.name.toLowerCase() === 'age' || column.type === 'date'
}

function isNarrow(column: Column): boolean {
  return isAge(column) || column.type === 'integer' || column.type === 'boolean' || column.type === 'number'
}
