import { expect, it } from 'vitest'
import { common } from './common'

it('defaults of the server are no difference, changed and lost fields are', () => {
  const wanted = { spec: { replicas: 2, gone: 1, list: [{ a: 1 }] }, status: {} }
  const found = { spec: { replicas: 3, added: true, list: [{ a: 1, b: 2 }, { c: 3 }] }, status: { ready: 1 } }
  expect(common(wanted, found)).toEqual({ spec: { replicas: 3, list: [{ a: 1 }, { c: 3 }] } })
})
