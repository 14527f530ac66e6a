// Gives people a role somewhere.

import { type FormEvent, useState } from 'react'
import type { Objects } from '../api/generated'
import { ApiError, call } from '../api/http'
import { useList } from '../api/hooks'
import { GRANTS, path, res } from '../api/paths'
import { t } from '../i18n'
import { useInstances } from '../instances'
import { Dialog } from '../ui/dialog'
import { Button, Failure, Field } from '../ui/parts'
import { toast } from '../ui/toast'

const ROOT = { instance: 'root' }
const ROLES = ['viewer', 'editor', 'admin']
const PLATFORM = '*'

export function GrantDialog({ onClose }: { onClose: () => void }) {
  const instances = useInstances()
  const own = useList(ROOT, res('atoll.io', 'v1alpha1', 'accessroles'))
  const [kind, setKind] = useState<'User' | 'Group'>('User')
  const [name, setName] = useState('')
  const [role, setRole] = useState('viewer')
  const [instance, setInstance] = useState('fleet')
  const [namespace, setNamespace] = useState('')
  const [error, setError] = useState<ApiError | null>(null)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    const scope = instance === PLATFORM ? { platform: true } : { instance, ...(namespace && { namespace }) }
    const metadata = { generateName: `${slug(name)}-${role}-`, name: '' }
    const grant = { apiVersion: 'atoll.io/v1alpha1', kind: 'Grant', metadata, spec: { role, subjects: [{ kind, name }], scope } } satisfies Objects['Grant']
    try {
      await call(path(ROOT, GRANTS), { method: 'POST', body: { ...grant, metadata: { generateName: metadata.generateName } } })
      toast('ok', t('grant.done', { name, role }))
      onClose()
    } catch (failure) {
      setError(ApiError.of(failure))
    }
  }
  return (
    <Dialog
      title={t('grant.new')}
      onClose={onClose}
      decide={
        <Button look="primary" type="submit" form="grant" disabled={!name.trim()}>
          {t('grant.give')}
        </Button>
      }
    >
      <form id="grant" className="stack" onSubmit={submit}>
        {error && <Failure error={error} />}
        <div className="grid two">
          <Field label={t('grant.to')}>
            {(id) => (
              <select id={id} className="select" value={kind} onChange={(event) => setKind(event.target.value as 'User')}>
                <option value="User">{t('grant.user')}</option>
                <option value="Group">{t('grant.group')}</option>
              </select>
            )}
          </Field>
          <Field label={t('name')}>{(id) => <input id={id} className="input" value={name} spellCheck={false} autoCapitalize="none" onChange={(event) => setName(event.target.value)} autoFocus />}</Field>
          <Field label={t('grant.role')}>
            {(id) => (
              <select id={id} className="select" value={role} onChange={(event) => setRole(event.target.value)}>
                {[...ROLES, ...own.items.map((one) => one.metadata.name)].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label={t('grant.where')}>
            {(id) => (
              <select id={id} className="select" value={instance} onChange={(event) => setInstance(event.target.value)}>
                {instances.items.map((one) => (
                  <option key={one.metadata.name}>{one.metadata.name}</option>
                ))}
                <option value={PLATFORM}>{t('grant.platform')}</option>
              </select>
            )}
          </Field>
          {instance !== PLATFORM && <Field label={t('namespace')} hint={t('grant.namespace.hint')}>{(id) => <input id={id} className="input" value={namespace} spellCheck={false} onChange={(event) => setNamespace(event.target.value.trim())} />}</Field>}
        </div>
      </form>
    </Dialog>
  )
}

/** A part of a name that objects may have. */
function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 40) || 'grant'
}
