import { expect, it } from 'vitest'
import { complaints } from './complaints'
import { fieldsOf, schemaAt, schemaOf, valuesOf } from './schema'

const ALL = {
  Meta: { type: 'object', properties: { name: { type: 'string' }, labels: { type: 'object', additionalProperties: { type: 'string' } } } },
  Spec: {
    type: 'object', required: ['image'],
    properties: {
      image: { type: 'string', description: 'what runs' }, replicas: { type: 'integer' }, port: { oneOf: [{ type: 'integer' }, { type: 'string' }] },
      mode: { type: 'string', enum: ['A', 'B'] }, env: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } }, on: { type: 'boolean' },
    },
  },
  Thing: { 'x-kubernetes-group-version-kind': [{ group: 'x', version: 'v1', kind: 'Thing' }], type: 'object', properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { allOf: [{ $ref: '#/components/schemas/Meta' }] }, spec: { $ref: '#/components/schemas/Spec' } } },
}
const HEAD = 'apiVersion: x/v1\nkind: Thing\n'
const found = async (text: string) => (await complaints(HEAD + text, async () => ALL)).map((one) => [(HEAD + text).slice(one.from, one.to), one.text])

it('has nothing against what fits', async () => {
  expect(await found('metadata: {name: a, labels: {x: y}}\nspec: {image: i, replicas: 2, port: http, mode: A, env: [{name: n}], on: true}')).toEqual([])
})

it('points at what does not fit', async () => {
  expect(await found('spec:\n  image: i\n  replicas: many')).toEqual([['many', 'Expected: integer']])
  expect(await found('spec:\n  image: i\n  imag: x')).toEqual([['imag', 'There is no field imag here']])
  expect(await found('metadata: {labels: {x: 1}}\nspec: {image: i, env: [{nam: n}]}')).toEqual([['1', 'Expected: string'], ['nam', 'There is no field nam here']])
  expect((await found('spec: {mode: C}')).map(([, text]) => text)).toEqual(['Expected: A, B', 'image is missing'])
  expect((await found('spec: [')).length).toBeGreaterThan(0)
})

it('knows what may stand at a place', () => {
  const thing = schemaOf(ALL, 'x', 'v1', 'Thing')
  const spec = schemaAt(thing, ['spec'], ALL)
  expect(fieldsOf(spec, ALL)[0]).toEqual({ name: 'image', type: 'string', required: true, about: 'what runs' })
  expect(fieldsOf(schemaAt(thing, ['spec', 'env', '[]'], ALL), ALL).map((one) => one.name)).toEqual(['name'])
  expect(valuesOf(schemaAt(thing, ['spec', 'mode'], ALL))).toEqual(['A', 'B'])
  expect(schemaAt(thing, ['spec', 'nothing', 'more'], ALL)).toBeUndefined()
})
