import { expect, it } from 'vitest'
import { matches, trackOf, wordsOf } from './rows'

const entry = (name: string, cells: unknown[] = [], labels: Record<string, string> = {}) => ({ key: name, object: { metadata: { name, namespace: 'shop', labels } }, cells })

it.each([
  ['web', true], ['WEB', true], ['shop web', true], ['web nope', false], ['3/3', true], ['app=web', true], ['app=x', false], ['!web', false], ['!nope', true], ['!', true], ['', true],
])('filter %j keeps the row: %s', (filter, kept) => {
  expect(matches(entry('web-1', ['web-1', '3/3'], { app: 'web' }), wordsOf(filter))).toBe(kept)
})

it('a column is as wide as what is in it, within bounds', () => {
  const column = { name: 'Images', type: 'string', priority: 0 }
  expect(trackOf(column, 0, [entry('a', ['x'.repeat(500)])])).toMatch(/^minmax\(230px/)
  expect(trackOf({ ...column, name: 'Replicas', type: 'integer' }, 0, [entry('a', [3])])).toMatch(/^\d+px$/)
})
