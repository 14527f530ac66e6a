// Which of many things somebody means by a few letters.

export interface Ranked {
  text: string
  also?: string[]
  group: string
}

/** The best few of each group; without words the first few. */
export function rank<T extends Ranked>(all: T[], words: string, most: number): T[] {
  const wanted = words.toLowerCase()
  const scored = all.map((one) => ({ one, score: wanted ? Math.max(...[one.text, ...(one.also ?? [])].map((text) => match(text.toLowerCase(), wanted))) : 1 }))
  const kept = scored.filter((scored) => scored.score > 0)
  if (wanted) kept.sort((a, b) => b.score - a.score || a.one.text.length - b.one.text.length)
  const counts = new Map<string, number>()
  return kept
    .filter(({ one }) => {
      const count = (counts.get(one.group) ?? 0) + 1
      counts.set(one.group, count)
      return count <= most
    })
    .map(({ one }) => one)
}

/** Equal beats beginning beats containing beats letters in order. */
export function match(text: string, wanted: string): number {
  if (text === wanted) return 100
  if (text.startsWith(wanted)) return 80
  const at = text.indexOf(wanted)
  if (at >= 0) return /[^a-z0-9]/.test(text[at - 1] ?? '') ? 60 : 40
  let from = 0
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1
    if (from === 0) return 0
  }
  return wanted.length >= 3 ? 10 : 0
}
