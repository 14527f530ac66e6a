import { diff } from '@codemirror/merge'

/** Each stretch in which two texts differ, and what replaces it: what lies between two of them is not touched. */
export function changes(before: string, after: string): { from: number; to: number; insert: string }[] {
  return diff(before, after, { scanLimit: 500 }).map(({ fromA, toA, fromB, toB }) => ({ from: fromA, to: toA, insert: after.slice(fromB, toB) }))
}
