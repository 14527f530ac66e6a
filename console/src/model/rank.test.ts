import { expect, it } from 'vitest'
import { match, rank } from './rank'

it('what is equal comes before what begins, contains, or merely has the letters', () => {
  const order = ['deploy', 'deployments', 'my-deploy', 'redeploy', 'd-e-p-l-o-y'].map((text) => match(text, 'deploy'))
  expect([...order].sort((a, b) => b - a)).toEqual(order)
  expect(new Set(order).size).toBe(5)
  expect(match('pod', 'deploy')).toBe(0)
})

it('short names count, and a group shows only its best', () => {
  const all = [
    { text: 'Deployment', also: ['deploy'], group: 'kinds' },
    ...Array.from({ length: 20 }, (_, n) => ({ text: `deploy-${n}`, group: 'objects' })),
  ]
  const found = rank(all, 'deploy', 3)
  expect(found[0]?.text).toBe('Deployment')
  expect(found.filter((one) => one.group === 'objects')).toHaveLength(3)
})
