// Signing in by redirect to an identity provider: authorization code with a proof key (PKCE). The proof key stays in
// this tab; the hub speaks with the provider.

import type { Answer } from './door'
import { t } from '../i18n'

export interface Provider {
  name: string
  title?: string
  clientId: string
  authorizationEndpoint: string
  scope: string
}

interface Errand {
  provider: string
  state: string
  nonce: string
  verifier: string
  /** Where to go on afterwards. */
  back: string
}

const KEY = 'atoll.errand'
const LOGIN = '/manage/login'

/** The providers one may be sent to. */
export async function providers(): Promise<Provider[]> {
  try {
    const response = await fetch(LOGIN, { credentials: 'omit' })
    const list = response.ok ? (await response.json()).providers : []
    return Array.isArray(list) ? list.filter((one) => /^https:\/\//.test(one.authorizationEndpoint)) : []
  } catch {
    return []
  }
}

/** Leaves for the provider. */
export async function leaveFor(provider: Provider): Promise<void> {
  const errand: Errand = { provider: provider.name, state: random(), nonce: random(), verifier: random(), back: location.pathname + location.search }
  sessionStorage.setItem(KEY, JSON.stringify(errand))
  const to = new URL(provider.authorizationEndpoint)
  const challenge = base64(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(errand.verifier))))
  const query = { response_type: 'code', client_id: provider.clientId, redirect_uri: here(), scope: provider.scope, state: errand.state, nonce: errand.nonce, code_challenge: challenge, code_challenge_method: 'S256' }
  for (const [key, value] of Object.entries(query)) to.searchParams.set(key, value)
  location.assign(to)
}

/** Whether the address says that somebody came back. */
export function cameBack(): boolean {
  const query = new URLSearchParams(location.search)
  return sessionStorage.getItem(KEY) !== null && query.has('state') && (query.has('code') || query.has('error'))
}

let going: Promise<Answer> | null = null

/** What the provider said; asked of the hub once, because a code is good once. */
export function finish(): Promise<Answer> {
  going ??= ask()
  return going
}

async function ask(): Promise<Answer> {
  const query = new URLSearchParams(location.search)
  const errand = JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Partial<Errand>
  sessionStorage.removeItem(KEY)
  history.replaceState(null, '', errand.back?.startsWith('/console') ? errand.back : '/console/')
  const said = query.get('error_description') ?? query.get('error')
  if (said) return { refusal: t('signin.provider.said', { said: said.slice(0, 200) }) }
  if (!errand.state || query.get('state') !== errand.state) return { refusal: t('signin.provider.stale') }
  try {
    const body = JSON.stringify({ provider: errand.provider, code: query.get('code'), verifier: errand.verifier, nonce: errand.nonce, redirectUri: here() })
    const response = await fetch(LOGIN, { method: 'POST', headers: { 'content-type': 'application/json' }, body, credentials: 'omit' })
    if (!response.ok) return { refusal: response.status === 401 ? t('signin.provider.refused') : t('error.other', { code: response.status }) }
    return { token: (await response.json()).token }
  } catch {
    return { refusal: t('error.unreachable') }
  }
}

/** The address that providers know this console by. */
function here(): string {
  return `${location.origin}/console/`
}

function random(): string {
  return base64(crypto.getRandomValues(new Uint8Array(32)))
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
