import { expect, it } from 'vitest'
import { change } from './change'

it.each([
  ['a: 1\nb: 2\n', 'a: 1\nb: 3\n'],
  ['', 'abc'],
  ['abc', ''],
  ['aaa', 'aaaa'],
  ['same', 'same'],
  ['abab', 'ab'],
])('turns %j into %j', (before, after) => {
  const { from, to, insert } = change(before, after)
  expect(before.slice(0, from) + insert + before.slice(to)).toBe(after)
  expect(to - from).toBeLessThanOrEqual(before.length)
})

it('touches only what differs', () => expect(change('a: 1\nb: 2\nc: 3', 'a: 1\nb: 9\nc: 3')).toEqual({ from: 8, to: 9, insert: '9' }))
