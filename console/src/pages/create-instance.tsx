// A new instance: what it is called, and then how it comes up, or why it does not.

import { ArrowRight } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useLocation } from 'wouter'
import type { Objects } from '../api/generated'
import { ApiError, call } from '../api/http'
import { useOne } from '../api/hooks'
import { INSTANCES, path } from '../api/paths'
import { t } from '../i18n'
import { phaseTone } from '../model/instance'
import { instanceLink } from '../model/links'
import { Dialog } from '../ui/dialog'
import { Age, Bones, Button, Failure, Field, Notice, Pill } from '../ui/parts'

const ROOT = { instance: 'root' }
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export function CreateInstance({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<string | null>(null)
  return made ? <Progress name={made} onClose={onClose} /> : <Ask onClose={onClose} onMade={setMade} />
}

function Ask({ onClose, onMade }: { onClose: () => void; onMade: (name: string) => void }) {
  const [name, setName] = useState('')
  const [alias, setAlias] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const valid = NAME.test(name)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const body = { apiVersion: 'atoll.io/v1alpha1', kind: 'Instance', metadata: { name }, spec: { type: 'Hosted', ...(alias && { alias }) } } satisfies Objects['Instance']
      await call(path(ROOT, INSTANCES), { method: 'POST', body })
      onMade(name)
    } catch (problem) {
      setError(ApiError.of(problem))
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={t('home.create')}
      onClose={onClose}
      decide={
        <Button look="primary" type="submit" form="create-instance" disabled={!valid || busy}>
          {t('create')}
        </Button>
      }
    >
      <form id="create-instance" className="stack" onSubmit={submit}>
        {error && <Failure error={error} />}
        <Field label={t('name')} hint={t('home.create.name')}>
          {(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value)} autoFocus autoComplete="off" spellCheck={false} aria-invalid={name !== '' && !valid} />}
        </Field>
        <Field label={t('home.create.alias')}>{(id) => <input id={id} className="input" maxLength={63} value={alias} onChange={(event) => setAlias(event.target.value)} />}</Field>
      </form>
    </Dialog>
  )
}

/** What the hub has done so far; failures with their causes. */
function Progress({ name, onClose }: { name: string; onClose: () => void }) {
  const [, go] = useLocation()
  const { object, error } = useOne(ROOT, INSTANCES, { name })
  const phase = object?.status?.phase ?? 'Pending'
  const conditions = object?.status?.conditions ?? []
  const causes = conditions.filter((one) => one.status === 'False' && one.message)
  const ready = phase === 'Ready'
  return (
    <Dialog
      title={t('home.create')}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t('close')}</Button>
          <Button look="primary" disabled={!ready} onClick={() => go(instanceLink(name))}>
            <ArrowRight size={15} aria-hidden="true" /> {t('open')}
          </Button>
        </>
      }
    >
      <div className="stack" aria-live="polite">
        {error && <Failure error={error} />}
        <div className="row">
          <span className="strong breaks grow">{name}</span>
          {object && <Age since={object.metadata.creationTimestamp} />}
          <Pill tone={phaseTone(phase)}>{phase}</Pill>
        </div>
        {!ready && !error && causes.length === 0 && <Bones lines={2} />}
        {causes.map((one) => (
          <Notice key={one.type} tone={phase === 'Failed' ? 'bad' : 'warn'} title={one.reason ?? one.type}>
            {one.message}
          </Notice>
        ))}
        {ready && <Notice tone="ok" title={t('home.create.ready')} />}
      </div>
    </Dialog>
  )
}
