// The object as YAML, to read or to change; the server says what it thinks of a change before it is made.

import { lazy, Suspense, useEffect, useState } from 'react'
import { Document, parse, stringify } from 'yaml'
import { useMay } from '../api/access'
import { ApiError, call } from '../api/http'
import { path, type Place, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { Bones, Button, Failure, Notice } from '../ui/parts'
import { CopyButton } from '../ui/copy'
import { toast } from '../ui/toast'

const Code = lazy(() => import('../ui/code'))

/** The text of an object without what only machines read. */
export function textOf(object: KObject, everything = false): string {
  const { name, namespace, labels, annotations, managedFields, ...machinery } = object.metadata
  const { apiVersion, kind, metadata: _, ...rest } = object
  // What people look for comes first.
  const metadata = { name, namespace, labels, annotations, ...machinery, ...(everything && { managedFields }) }
  const shown = { apiVersion, kind, metadata, ...rest }
  return stringify(new Document(shown, { aliasDuplicateObjects: false }), { lineWidth: 0, keepUndefined: false })
}

export default function YamlTab({ object, place, resource }: { object: KObject; place: Place; resource: Resource }) {
  const { name, namespace } = object.metadata
  const mayEdit = useMay(place, { verb: 'update', group: resource.group, resource: resource.plural, ...(namespace && { namespace }), name })
  const [draft, setDraft] = useState<{ from: KObject; base: string; text: string } | null>(null)
  const [changes, setChanges] = useState(false)
  const [all, setAll] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const [busy, setBusy] = useState(false)
  const current = textOf(object, all)
  const dirty = draft !== null && draft.text !== draft.base
  const stale = dirty && draft.from.metadata.resourceVersion !== object.metadata.resourceVersion
  useEffect(() => {
    if (!dirty) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [dirty])
  const edit = (text: string) => setDraft((before) => (before ? { ...before, text } : { from: object, base: current, text }))
  const save = async () => {
    if (!draft) return
    setBusy(true)
    setError(null)
    try {
      const body = parse(draft.text) as KObject
      body.metadata.resourceVersion ??= draft.from.metadata.resourceVersion
      await call(path(place, resource, { namespace, name }, { fieldValidation: 'Strict', fieldManager: 'atoll-console' }), { method: 'PUT', body })
      toast('ok', t('saved'))
      setDraft(null)
      setChanges(false)
    } catch (problem) {
      setError(ApiError.of(problem, 400, 'YAML'))
    }
    setBusy(false)
  }
  return (
    <div className="stack fill">
      {error && <Failure error={error} />}
      {stale && (
        <Notice tone="warn" title={t('yaml.stale')} action={<Button look="small" onClick={() => setDraft(null)}>{t('yaml.discard')}</Button>}>
          {t('yaml.stale.detail')}
        </Notice>
      )}
      <div className="bar">
        {mayEdit && (
          <>
            <Button look="primary" disabled={!dirty || busy} onClick={save}>
              {t('save')}
            </Button>
            <Button disabled={!dirty} onClick={() => setDraft(null)}>
              {t('yaml.discard')}
            </Button>
            <Button aria-pressed={changes} disabled={!dirty} onClick={() => setChanges(!changes)}>
              {t('yaml.changes')}
            </Button>
          </>
        )}
        {mayEdit === false && <span className="small muted">{t('yaml.readonly')}</span>}
        <span className="end row">
          <label className="check">
            <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} disabled={dirty} /> {t('yaml.all')}
          </label>
          <CopyButton text={draft?.text ?? current} />
        </span>
      </div>
      <Suspense fallback={<Bones lines={12} />}>
        <div className="panel code-panel">
          <Code value={draft?.text ?? current} original={changes && draft ? draft.base : undefined} onChange={mayEdit ? edit : undefined} onSave={save} label={t('yaml')} place={place} />
        </div>
      </Suspense>
    </div>
  )
}
