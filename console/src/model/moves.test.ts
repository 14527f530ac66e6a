import { expect, it } from 'vitest'
import { moves, steps } from './moves'

it('says for each cluster what changes', () => {
  const move = { subject: 'Deployment default/web', before: { a: 1, b: 2, c: 3 }, after: { b: 3, c: 3, d: 1 } }
  expect(steps(move).map((step) => `${step.cluster} ${step.change}`)).toEqual(['a gone', 'b more', 'c same', 'd new'])
  expect(moves(move)).toBe(true)
})

it('nothing moves when every cluster keeps its share, unless no place is found', () => {
  const still = { subject: 'x', before: { a: 1 }, after: { a: 1 } }
  expect(moves(still)).toBe(false)
  expect(moves({ ...still, error: 'no cluster fits' })).toBe(true)
})
