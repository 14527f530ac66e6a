// A new object, filled in or written as YAML, and checked by the server before it is made.

import { Plus } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useLocation } from 'wouter'
import { useMay } from '../api/access'
import { ApiError, call } from '../api/http'
import { kindsOf } from '../api/discovery'
import { apiVersion, path, type Place, type Resource, splitApiVersion } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { blank, type Filled, formOf, objectOf, wrong } from '../model/forms'
import { objectLink } from '../model/links'
import { starter } from '../model/starter'
import { Dialog } from '../ui/dialog'
import { Bones, Button, Failure, Notice, Segments } from '../ui/parts'
import { toast } from '../ui/toast'
import { ObjectFields } from './object-form'

const Code = lazy(() => import('../ui/code'))

interface Props {
  place: Place
  resource: Resource
  kind: string
  namespaced: boolean
  namespace: string
  onClose: () => void
}

/** A button that opens the form of a kind, for who may make one. */
export function CreateButton({ place, resource, kind, namespace }: { place: Place; resource: Resource; kind: string; namespace?: string }) {
  const [open, setOpen] = useState(false)
  const may = useMay(place, { verb: 'create', group: resource.group, resource: resource.plural })
  if (!may) return null
  return (
    <>
      <Button look="small" onClick={() => setOpen(true)}>
        <Plus size={13} aria-hidden="true" /> {t('create')}
      </Button>
      {open && <CreateDialog place={place} resource={resource} kind={kind} namespaced={namespace !== undefined} namespace={namespace ?? ''} onClose={() => setOpen(false)} />}
    </>
  )
}

export function CreateDialog({ place, resource, kind, namespaced, namespace, onClose }: Props) {
  const [text, setText] = useState(() => starter(apiVersion(resource), kind, namespaced ? namespace : undefined))
  const form = formOf(resource.group, kind)
  const [view, setView] = useState<'form' | 'yaml'>(form ? 'form' : 'yaml')
  const [filled, setFilled] = useState<Filled | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [checked, setChecked] = useState(false)
  const [, go] = useLocation()
  const shown = filled ?? (form && blank(form))
  const complete = view === 'yaml' || (form && shown && wrong(form, shown).length === 0)
  const written = async () => {
    if (view === 'yaml' || !form || !shown) return text
    const { stringify } = await import('yaml')
    return stringify(objectOf(form, shown, apiVersion(resource), kind, namespaced ? namespace : undefined))
  }
  // What was filled in is shown as YAML; an untouched form leaves the example.
  const turn = async (next: 'form' | 'yaml') => {
    if (next === 'yaml' && filled) setText(await written())
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
      setError(ApiError.of(problem, 400))
    }
  }
  return (
    <Dialog
      look="wide"
      title={t('create.title', { kind })}
      onClose={onClose}
      tools={form && <Segments label={t('view')} value={view} onChange={turn} options={[{ value: 'form', text: t('form') }, { value: 'yaml', text: 'YAML' }]} />}
      decide={
        <>
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
        {view === 'form' && form && shown ? (
          <ObjectFields form={form} filled={shown} onChange={setFilled} />
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
