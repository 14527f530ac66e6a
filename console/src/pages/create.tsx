// A new object, written as YAML and checked by the server before it is made.

import { lazy, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiError, call } from '../api/http'
import { kindsOf } from '../api/discovery'
import { apiVersion, path, type Place, type Resource, splitApiVersion } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { starter } from '../model/starter'
import { FIRST, FORMS, objectOf, type Workload, wrong } from '../model/workload'
import { Dialog } from '../ui/dialog'
import { Bones, Button, Failure, Notice, Segments } from '../ui/parts'
import { toast } from '../ui/toast'
import { WorkloadForm } from './workload-form'

const Code = lazy(() => import('../ui/code'))

interface Props {
  place: Place
  resource: Resource
  kind: string
  namespaced: boolean
  namespace: string
  onClose: () => void
}

export function CreateDialog({ place, resource, kind, namespaced, namespace, onClose }: Props) {
  const [text, setText] = useState(() => starter(apiVersion(resource), kind, namespaced ? namespace : undefined))
  const hasForm = FORMS.includes(kind)
  const [view, setView] = useState<'form' | 'yaml'>(hasForm ? 'form' : 'yaml')
  const [form, setForm] = useState<Workload>(FIRST)
  const [error, setError] = useState<ApiError | null>(null)
  const [checked, setChecked] = useState(false)
  const [, go] = useLocation()
  const complete = view === 'yaml' || wrong(form).length === 0
  const written = async () => {
    if (view === 'yaml') return text
    const { stringify } = await import('yaml')
    return stringify(objectOf(form, apiVersion(resource), kind, namespace))
  }
  // What was filled in is shown as YAML; an untouched form leaves the example.
  const turn = async (next: 'form' | 'yaml') => {
    if (next === 'yaml' && form !== FIRST) setText(await written())
    setView(next)
  }
  const attempt = async (dryRun: boolean) => {
    setError(null)
    setChecked(false)
    try {
      const made = await createAll(place, await written(), namespace, dryRun)
      if (dryRun) return setChecked(true)
      const [first] = made
      toast('ok', t('created', { n: made.length }))
      onClose()
      if (first && made.length === 1) go(objectLink(place, first.resource, first.object.metadata.namespace, first.object.metadata.name))
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError(400, '', String(problem instanceof Error ? problem.message : problem)))
    }
  }
  return (
    <Dialog
      look="wide"
      title={t('create.title', { kind })}
      onClose={onClose}
      tools={hasForm && <Segments label={t('view')} value={view} onChange={turn} options={[{ value: 'form', text: t('form') }, { value: 'yaml', text: 'YAML' }]} />}
      footer={
        <>
          <Button onClick={onClose}>{t('cancel')}</Button>
          <Button disabled={!complete} onClick={() => attempt(true)}>
            {t('check')}
          </Button>
          <Button look="primary" disabled={!complete} onClick={() => attempt(false)}>
            {t('create')}
          </Button>
        </>
      }
    >
      <div className="stack">
        {error && <Failure error={error} />}
        {checked && <Notice tone="ok" title={t('check.ok')} />}
        {view === 'form' ? (
          <WorkloadForm form={form} kind={kind} onChange={setForm} />
        ) : (
          <Suspense fallback={<Bones lines={8} />}>
            <Code value={text} onChange={setText} label={t('yaml')} height="min(56vh, 520px)" place={place} />
          </Suspense>
        )}
      </div>
    </Dialog>
  )
}

async function createAll(place: Place, text: string, namespace: string, dryRun: boolean): Promise<{ object: KObject; resource: Resource }[]> {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(text)
  const kinds = await kindsOf(place)
  const out: { object: KObject; resource: Resource }[] = []
  for (const document of documents) {
    if (document.errors[0]) throw new ApiError(400, 'YAML', document.errors[0].message)
    const object = document.toJS() as KObject | null
    if (!object) continue
    const { group } = splitApiVersion(object.apiVersion ?? '')
    const kind = kinds.find((one) => one.group === group && one.kind === object.kind)
    if (!kind) throw new ApiError(400, 'NoKind', t('create.nokind', { kind: `${object.apiVersion} ${object.kind}` }))
    const where = kind.namespaced ? (object.metadata?.namespace ?? namespace) : undefined
    const url = path(place, kind, { namespace: where }, { dryRun: dryRun ? 'All' : undefined, fieldValidation: 'Strict', fieldManager: 'atoll-console' })
    out.push({ object: await call<KObject>(url, { method: 'POST', body: object }), resource: kind })
  }
  return out
}
