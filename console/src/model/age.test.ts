import { expect, it } from 'vitest'
import { age, span } from './age'

it.each([[0, '0s'], [119, '119s'], [125, '2m5s'], [600, '10m'], [4 * 3600 + 120, '4h2m'], [30 * 3600, '30h'], [3 * 86400, '3d'], [3 * 86400 + 7200, '3d2h'], [100 * 86400, '100d'], [800 * 86400, '2y'], [-5, '0s']])(
  '%s seconds read as %s',
  (seconds, text) => expect(span(seconds)).toBe(text),
)

it('an unknown time is a dash', () => {
  expect(age(undefined, 0)).toBe('—')
  expect(age('never', 0)).toBe('—')
})
