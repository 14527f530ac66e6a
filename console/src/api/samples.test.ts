import { expect, it } from 'vitest'
import { usageOf } from './samples'

it('adds up nodes, and the containers of pods', () => {
  expect(usageOf({ items: [{ usage: { cpu: '500m', memory: '1Ki' } }, { usage: { cpu: '1', memory: '1Ki' } }] })).toEqual({ cpu: 1.5, memory: 2048 })
  expect(usageOf({ containers: [{ usage: { cpu: '250m', memory: '1Mi' } }, { usage: { cpu: '250m', memory: '0' } }] })).toEqual({ cpu: 0.5, memory: 1048576 })
})
