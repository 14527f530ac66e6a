// The door: a token is shown to the server before it is kept.

import { KeyRound } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { t } from '../i18n'
import { signIn, wasRefused } from '../session'
import { Mark } from '../shell/mark'
import { Button, Field, Notice } from '../ui/parts'

export function SignIn() {
  const [value, setValue] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(wasRefused() ? t('signin.expired') : null)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const secret = value.trim()
    setBusy(true)
    setProblem(await refusal(secret))
    setBusy(false)
  }
  return (
    <main className="signin">
      <form className="panel" onSubmit={submit}>
        <div className="row gap-12">
          <Mark size={38} />
          <div>
            <h1>{t('signin.title')}</h1>
            <div className="muted small">{t('signin.sub')}</div>
          </div>
        </div>
        {problem && <Notice tone="bad" title={problem} />}
        <Field label={t('signin.token')} hint={t('signin.hint')}>
          {(id) => <input id={id} type="password" className="input mono" autoComplete="off" spellCheck={false} value={value} onChange={(event) => setValue(event.target.value)} autoFocus required />}
        </Field>
        <Button look="primary" type="submit" disabled={busy || !value.trim()}>
          <KeyRound size={15} aria-hidden="true" /> {busy ? t('signin.busy') : t('signin.go')}
        </Button>
        <p className="small muted">
          {t('signin.where')} <code>atoll-data/admin.token</code>
        </p>
      </form>
    </main>
  )
}

/** Why the server does not take a token; null when it does, which signs in. */
async function refusal(secret: string): Promise<string | null> {
  if (!/^[\x21-\x7e]+$/.test(secret)) return t('signin.malformed')
  try {
    const response = await fetch('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }),
      credentials: 'omit',
    })
    if (response.status === 401) return t('signin.refused')
    if (!response.ok && response.status !== 403) return t('error.other', { code: response.status })
  } catch {
    return t('error.unreachable')
  }
  signIn(secret)
  return null
}
