import { expect, it } from 'vitest'
import { readKubeconfig } from './kubeconfig'

const config = (cluster: object, user: object) => ({ 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }], clusters: [{ name: 'k', cluster }], users: [{ name: 'u', user }] })

it('takes a kubeconfig with a token of a server that proves itself', () => {
  expect(readKubeconfig(config({ server: 'https://a:6443/', 'certificate-authority-data': 'Y2E=' }, { token: 't' }))).toEqual({ found: { server: 'https://a:6443', ca: 'Y2E=', token: 't' } })
})

it.each([
  [null, 'unreadable'],
  [{ contexts: [] }, 'unreadable'],
  [config({ server: 'http://a' }, { token: 't' }), 'insecure'],
  [config({ server: 'https://a', 'insecure-skip-tls-verify': true }, { token: 't' }), 'insecure'],
  [config({ server: 'https://a' }, { exec: { command: 'x' } }), 'program'],
  [config({ server: 'https://a' }, { 'client-certificate-data': 'x' }), 'no-token'],
])('says what is wrong with others (%#)', (given, problem) => expect(readKubeconfig(given)).toEqual({ problem }))
