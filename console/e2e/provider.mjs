// A small identity provider: OpenID Connect with authorization code and proof key, for one user who always agrees.

import { execFileSync } from 'node:child_process'
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A key and a certificate that proves 127.0.0.1, as PEM. */
export function certificate() {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-e2e-'))
  const at = (name) => join(directory, name)
  const about = ['-subj', '/CN=localhost', '-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', ...about, '-keyout', at('key'), '-out', at('cert')], { stdio: 'ignore' })
  const pair = { key: readFileSync(at('key'), 'utf8'), cert: readFileSync(at('cert'), 'utf8') }
  rmSync(directory, { recursive: true, force: true })
  return pair
}

/** A key and a request for a certificate, as PEM. */
export function request(subject) {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-e2e-'))
  const at = (name) => join(directory, name)
  execFileSync('openssl', ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', subject, '-keyout', at('key'), '-out', at('csr')], { stdio: 'ignore' })
  const pair = { key: readFileSync(at('key')), csr: readFileSync(at('csr')) }
  rmSync(directory, { recursive: true, force: true })
  return pair
}

export async function serveProvider(audience, user) {
  const pair = certificate()
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const codes = new Map()
  const seen = []
  let url = ''
  const answer = (response, body, code = 200) => response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const token = (nonce) => {
    const part = (object) => Buffer.from(JSON.stringify(object)).toString('base64url')
    const text = `${part({ alg: 'ES256', kid: 'one' })}.${part({ iss: url, aud: audience, sub: user, nonce, exp: Math.floor(Date.now() / 1000) + 3600, groups: ['team-b'] })}`
    return `${text}.${sign('sha256', Buffer.from(text), { key: keys.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
  }
  const give = (query, response) => {
    const code = randomUUID()
    codes.set(code, { challenge: query.get('code_challenge'), nonce: query.get('nonce'), to: query.get('redirect_uri') })
    const back = new URL(query.get('redirect_uri'))
    back.searchParams.set('code', code)
    back.searchParams.set('state', query.get('state'))
    response.writeHead(302, { location: back.href }).end()
  }
  const exchange = async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const form = new URLSearchParams(text)
    const known = codes.get(form.get('code'))
    codes.delete(form.get('code'))
    const proven = known && createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url') === known.challenge && known.to === form.get('redirect_uri')
    seen.push(proven ? 'proven' : 'refused')
    return proven ? answer(response, { id_token: token(known.nonce) }) : answer(response, { error: 'invalid_grant' }, 400)
  }
  const server = https.createServer(pair, (request, response) => {
    const at = new URL(request.url, url)
    if (at.pathname === '/.well-known/openid-configuration') return answer(response, { issuer: url, jwks_uri: `${url}/keys`, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` })
    if (at.pathname === '/keys') return answer(response, { keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }] })
    if (at.pathname === '/authorize') return give(at.searchParams, response)
    if (at.pathname === '/token') return exchange(request, response)
    answer(response, {}, 404)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${server.address().port}`
  return { url, seen, caData: Buffer.from(pair.cert).toString('base64'), close: () => server.closeAllConnections() ?? server.close() }
}
