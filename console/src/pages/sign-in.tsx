// The door: whatever somebody brings is shown to the server before it is kept.

import { BadgeCheck, KeyRound, LogIn } from 'lucide-react'
import { type FormEvent, useEffect, useState } from 'react'
import { type Answer, byCertificate, byPassword, byToken } from '../api/door'
import { cameBack, finish, leaveFor, type Provider, providers } from '../api/redirect'
import { t } from '../i18n'
import { signIn, wasRefused } from '../session'
import { Mark } from '../shell/mark'
import { Button, Field, Notice, Segments } from '../ui/parts'

type Way = 'account' | 'token'

export function SignIn() {
  const [way, setWay] = useState<Way>('token')
  const [user, setUser] = useState('')
  const [secret, setSecret] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(wasRefused() ? t('signin.expired') : null)
  const attempt = async (asked: Promise<Answer>) => {
    setBusy(true)
    setProblem(null)
    const answer = await asked
    setBusy(false)
    if ('token' in answer) signIn(answer.token)
    else setProblem(answer.refusal)
  }
  useEffect(() => {
    if (cameBack()) void attempt(finish())
  }, [])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void attempt(way === 'token' ? byToken(secret.trim()) : byPassword(user.trim(), secret))
  }
  const turn = (next: Way) => {
    setWay(next)
    setSecret('')
    setProblem(null)
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
        <Segments<Way> label={t('signin.way')} value={way} onChange={turn} options={[{ value: 'token', text: t('signin.token') }, { value: 'account', text: t('signin.account') }]} />
        {way === 'account' && (
          <Field label={t('signin.user')}>
            {(id) => <input id={id} className="input" autoComplete="username" spellCheck={false} autoCapitalize="none" value={user} onChange={(event) => setUser(event.target.value)} autoFocus required />}
          </Field>
        )}
        <Field key={way} label={way === 'token' ? t('signin.token') : t('signin.password')} hint={way === 'token' ? t('signin.hint') : t('signin.password.hint')}>
          {(id) => (
            <input
              id={id}
              type="password"
              className="input mono"
              autoComplete={way === 'token' ? 'off' : 'current-password'}
              spellCheck={false}
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
              autoFocus={way === 'token'}
              required
            />
          )}
        </Field>
        <Button look="primary" type="submit" disabled={busy || !secret.trim() || (way === 'account' && !user.trim())}>
          <KeyRound size={15} aria-hidden="true" /> {busy ? t('signin.busy') : t('signin.go')}
        </Button>
        <Elsewhere disabled={busy} />
        <Certified onAccept={() => signIn('')} />
        <p className="small muted">
          {t('signin.where')} <code>atoll-data/admin.token</code>
        </p>
      </form>
    </main>
  )
}

/** Identity providers that people may be sent to. */
function Elsewhere({ disabled }: { disabled: boolean }) {
  const [list, setList] = useState<Provider[]>([])
  useEffect(() => {
    let gone = false
    providers().then((found) => !gone && setList(found))
    return () => {
      gone = true
    }
  }, [])
  return list.map((one) => (
    <Button key={one.name} disabled={disabled} onClick={() => void leaveFor(one)}>
      <LogIn size={15} aria-hidden="true" /> {t('signin.provider', { name: one.title || one.name })}
    </Button>
  ))
}

/** Offered only when the browser already showed a certificate that the hub knows. */
function Certified({ onAccept }: { onAccept: () => void }) {
  const [name, setName] = useState<string | null>(null)
  useEffect(() => {
    let gone = false
    byCertificate().then((known) => !gone && setName(known))
    return () => {
      gone = true
    }
  }, [])
  if (!name) return null
  return (
    <Button onClick={onAccept}>
      <BadgeCheck size={15} aria-hidden="true" /> {t('signin.certificate', { name })}
    </Button>
  )
}
