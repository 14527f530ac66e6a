// What a planned move means for each cluster.

import type { Move } from '../api/plan'

export type Step = { cluster: string; before?: number; after?: number; change: 'new' | 'gone' | 'more' | 'less' | 'same' }

export function steps(move: Move): Step[] {
  const clusters = [...new Set([...Object.keys(move.before), ...Object.keys(move.after)])].sort()
  return clusters.map((cluster) => {
    const before = move.before[cluster]
    const after = move.after[cluster]
    const change = before === undefined ? 'new' : after === undefined ? 'gone' : after > before ? 'more' : after < before ? 'less' : 'same'
    return { cluster, before, after, change }
  })
}

export function moves(move: Move): boolean {
  return move.error !== undefined || steps(move).some((step) => step.change !== 'same')
}
