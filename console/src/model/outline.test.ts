import { expect, it } from 'vitest'
import { documentAt, kindOf, spotAt } from './outline'

const TEXT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: main
          image: nginx
          ports:
            - containerPort: 80
          |
      volumes:
      - name: a
        |2
  |3
  paused: t|4
`

function at(mark: string) {
  const lines = TEXT.split('\n')
  const line = lines.findIndex((one) => one.trimEnd().endsWith(mark))
  const column = (lines[line] ?? '').indexOf('|')
  const clean = lines.map((one) => one.replace(/\|\d?$/, ''))
  return spotAt(clean, line, column)
}

it('finds the path of a key that is being typed, through lists', () => {
  expect(at('|')).toMatchObject({ path: ['spec', 'template', 'spec', 'containers', '[]'], valueOf: null })
  expect(at('|').beside.sort()).toEqual(['image', 'name', 'ports'])
  expect(at('|2').path).toEqual(['spec', 'template', 'spec', 'volumes', '[]'])
  expect(at('|3').path).toEqual(['spec'])
  expect(at('|3').beside.sort()).toEqual(['paused', 'replicas', 'template'])
})

it('tells a value from a key', () => {
  expect(at('|4')).toMatchObject({ path: ['spec'], valueOf: 'paused' })
})

it('keeps documents apart', () => {
  const lines = 'kind: A\n---\napiVersion: v1\nkind: B\n---\nkind: C'.split('\n')
  expect(kindOf(documentAt(lines, 3).lines)).toEqual({ apiVersion: 'v1', kind: 'B' })
})
