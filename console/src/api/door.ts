// Ways to become somebody: a token, a local account, or the certificate of the browser.

import { t } from '../i18n'

export type Answer = { token: string } | { refusal: string }

const REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const QUESTION = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })

export async function byToken(secret: string): Promise<Answer> {
  if (!/^[\x21-\x7e]+$/.test(secret)) return { refusal: t('signin.malformed') }
  try {
    const response = await fetch(REVIEW, { method: 'POST', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }, body: QUESTION, credentials: 'omit' })
    if (response.status === 401) return { refusal: t('signin.refused') }
    // Who may not even ask who they are is known nevertheless.
    if (!response.ok && response.status !== 403) return { refusal: t('error.other', { code: response.status }) }
  } catch {
    return { refusal: t('error.unreachable') }
  }
  return { token: secret }
}

export async function byPassword(user: string, password: string): Promise<Answer> {
  try {
    const response = await fetch('/manage/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user, password }), credentials: 'omit' })
    if (response.status === 401 || response.status === 403) return { refusal: t('signin.wrong') }
    if (response.status === 404) return { refusal: t('signin.noaccounts') }
    if (!response.ok) return { refusal: t('error.other', { code: response.status }) }
    const { token } = await response.json()
    return typeof token === 'string' ? { token } : { refusal: t('signin.wrong') }
  } catch {
    return { refusal: t('error.unreachable') }
  }
}

/** Whose certificate the browser showed; null when it showed none. */
export async function byCertificate(): Promise<string | null> {
  try {
    const response = await fetch(REVIEW, { method: 'POST', headers: { 'content-type': 'application/json' }, body: QUESTION, credentials: 'same-origin' })
    if (!response.ok) return null
    const name = (await response.json()).status?.userInfo?.username
    return typeof name === 'string' && name !== 'system:anonymous' ? name : null
  } catch {
    return null
  }
}
