import { expect, it } from 'vitest'
import { changes } from './changes'

it.each([
  ['a: 1\nb: 2\n', 'a: 1\nb: 3\n'],
  ['', 'abc'],
  ['abc', ''],
  ['aaa', 'aaaa'],
  ['same', 'same'],
  ['abab', 'ab'],
  [Array.from({ length: 900 }, (_, at) => `a${at * 7}`).join('\n'), Array.from({ length: 900 }, (_, at) => `b${at * 11}`).join('\n')],
])('turns one text into the other', (before, after) => {
  let [text, at] = ['', 0]
  for (const { from, to, insert } of changes(before, after)) {
    text += before.slice(at, from) + insert
    at = to
  }
  expect(text + before.slice(at)).toBe(after)
})

it('touches only what differs', () => expect(changes('a: 1\nb: 2\nc: 3', 'a: 1\nb: 9\nc: 3')).toEqual([{ from: 8, to: 9, insert: '9' }]))

it('leaves alone what lies between two differences', () => {
  const object = (version: number, ready: number) => `metadata:\n  resourceVersion: "${version}"\nspec:\n  replicas: 3\nstatus:\n  ready: ${ready}\n`
  const cursor = object(41, 0).indexOf('replicas')
  const touched = changes(object(41, 0), object(57, 3)).filter(({ from, to }) => from <= cursor && cursor <= to)
  expect(touched).toEqual([])
})
