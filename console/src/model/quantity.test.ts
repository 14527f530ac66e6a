import { describe, expect, it } from 'vitest'
import { bytes, cores, quantity } from './quantity'

describe('quantities', () => {
  it.each([
    ['4', 4], ['500m', 0.5], ['16Gi', 16 * 2 ** 30], ['1e3', 1000], ['1.5k', 1500], ['100n', 1e-7], ['2E', 2e18], ['12E3', 12000],
    ['', 0], ['x', 0], [undefined, 0], [7, 7], ['-1', -1],
  ])('reads %s as %s', (text, value) => expect(quantity(text)).toBeCloseTo(value, 9))

  it.each([[0, '0'], [0.25, '250m'], [1.5, '1.5'], [4, '4'], [12345, '12,345']])('shows %s cores as %s', (value, text) => expect(cores(value)).toBe(text))
  it.each([[0, '0 B'], [1023, '1023 B'], [1536, '1.5 KiB'], [16 * 2 ** 30, '16 GiB']])('shows %s bytes as %s', (value, text) => expect(bytes(value)).toBe(text))
})
