/** The one stretch in which two texts differ, and what replaces it. */
export function change(before: string, after: string): { from: number; to: number; insert: string } {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head += 1
  let tail = 0
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1
  return { from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) }
}
