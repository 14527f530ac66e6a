import { expect, it } from 'vitest'
import { type Journal, LIVE, withNew, withOlder } from './journal'

const lines = (...times: number[]) => times.map((time) => ({ time: String(time) }))
const journal = (more: Partial<Journal<{ time: string }>> = {}) => ({ lines: lines(5, 4, 3), ended: true, room: 4, ...more })

it('lets the oldest lines go when there are too many, and says that there are more', () => {
  expect(withNew(journal(), lines(6))).toEqual(journal({ lines: lines(6, 5, 4, 3) }))
  expect(withNew(journal(), lines(7, 6))).toEqual(journal({ lines: lines(7, 6, 5, 4), ended: false }))
})

it('keeps lines of the same time together, because pages begin before a time', () => {
  expect(withNew(journal({ lines: lines(5, 5, 4) }), lines(7, 6, 6)).lines).toEqual(lines(7, 6, 6, 5, 5))
  expect(withNew(journal({ lines: lines(5, 5, 5) }), lines(6, 6))).toEqual(journal({ lines: lines(6, 6, 5, 5, 5) }))
})

it('keeps what was paged back to', () => {
  const paged = withOlder(journal({ ended: false }), '3', lines(2, 1))
  expect(paged).toEqual({ lines: lines(5, 4, 3, 2, 1), ended: false, room: 5 + LIVE })
  expect(withNew(paged, lines(6)).lines).toEqual(lines(6, 5, 4, 3, 2, 1))
  expect(withOlder(paged, '1', [])).toEqual({ ...paged, ended: true })
})

it('leaves out a page that would leave a gap', () => {
  const cut = withNew(journal(), lines(7, 6))
  expect(withOlder(cut, '3', lines(2, 1))).toBe(cut)
})
