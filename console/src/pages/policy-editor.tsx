// A policy by form or YAML, new or there already, with what it would select and move shown beside it.

import { lazy, Suspense, useMemo, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import { parse, stringify } from 'yaml'
import { ApiError, call } from '../api/http'
import { useList, useOne } from '../api/hooks'
import { CLUSTER_OVERRIDES, CLUSTER_POLICIES, CLUSTERS, OVERRIDES, path, POLICIES, type Resource } from '../api/paths'
import type { KObject, Loose } from '../api/types'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { useHere } from '../place'
import { Bones, Button, Failure, Notice, Segments } from '../ui/parts'
import { toast } from '../ui/toast'
import { OverrideForm, PropagationForm } from './policy-form'
import { MovesPanel } from './moves'
import { PolicyPreview } from './policy-preview'

const Code = lazy(() => import('../ui/code'))

const KINDS: Resource[] = [POLICIES, CLUSTER_POLICIES, OVERRIDES, CLUSTER_OVERRIDES]

export default function PolicyEditor() {
  const [query] = useSearchParams()
  return <Editor first={query.get('type') === 'override' ? firstOverride(query) : firstPolicy(query)} />
}

/** A policy that is there, to be changed. */
export function PolicyChange({ plural, namespace, name }: { plural: string; namespace: string; name: string }) {
  const { place } = useHere()
  const resource = KINDS.find((one) => one.plural === plural) ?? POLICIES
  const { object, error } = useOne(place, resource, { namespace: namespace === '-' ? undefined : namespace, name })
  if (object) return <Editor first={withoutMachinery(object)} />
  return <div className="page">{error ? <Failure error={error} /> : <Bones lines={8} />}</div>
}

function Editor({ first }: { first: KObject }) {
  const { place } = useHere()
  const [, go] = useLocation()
  const isNew = !first.metadata.uid
  const override = /OverridePolicy$/.test(first.kind ?? '')
  const clusters = useList(place, CLUSTERS)
  const [view, setView] = useState<'form' | 'yaml'>('form')
  const [policy, setPolicy] = useState<KObject>(first)
  const [text, setText] = useState('')
  const [error, setError] = useState<ApiError | null>(null)
  const [checked, setChecked] = useState(false)
  const shown = useMemo(() => (view === 'yaml' ? (readYaml(text) ?? policy) : policy), [view, text, policy])
  const turn = (next: 'form' | 'yaml') => {
    if (next === 'yaml') setText(stringify(policy))
    else {
      const read = readYaml(text)
      if (!read) return setError(new ApiError(400, 'YAML', t('policy.unreadable')))
      setPolicy(read)
    }
    setError(null)
    setView(next)
  }
  const attempt = async (dryRun: boolean) => {
    setError(null)
    setChecked(false)
    const resource = resourceOf(shown)
    const at = { namespace: shown.kind?.startsWith('Cluster') ? undefined : shown.metadata.namespace, name: isNew ? undefined : first.metadata.name }
    try {
      const url = path(place, resource, at, { dryRun: dryRun ? 'All' : undefined, fieldValidation: 'Strict', fieldManager: 'atoll-console' })
      const made = await call<KObject>(url, { method: isNew ? 'POST' : 'PUT', body: shown })
      if (dryRun) return setChecked(true)
      toast('ok', isNew ? t('created', { n: 1 }) : t('saved'))
      go(objectLink(place, resource, made.metadata.namespace, made.metadata.name))
    } catch (problem) {
      setError(ApiError.of(problem, 400))
    }
  }
  return (
    <div className="page">
      <div className="title">
        <h1 className="breaks">{isNew ? (override ? t('policy.new.override') : t('policy.new')) : t('policy.change', { name: first.metadata.name })}</h1>
        <span className="end">
          <Segments label={t('view')} value={view} onChange={turn} options={[{ value: 'form', text: t('form') }, { value: 'yaml', text: 'YAML' }]} />
          <Button onClick={() => attempt(true)}>{t('check')}</Button>
          <Button look="primary" disabled={!shown.metadata?.name} onClick={() => attempt(false)}>
            {isNew ? t('create') : t('save')}
          </Button>
        </span>
      </div>
      {error && <Failure error={error} />}
      {checked && <Notice tone="ok" title={t('check.ok')} />}
      <div className="editor-grid">
        <div className="panel">
          {view === 'yaml' ? (
            <Suspense fallback={<div className="pad"><Bones lines={10} /></div>}>
              <Code value={text} onChange={setText} label={t('yaml')} height="62vh" place={place} />
            </Suspense>
          ) : override ? (
            <OverrideForm policy={policy} onChange={setPolicy} clusters={clusters.items} />
          ) : (
            <PropagationForm policy={policy} onChange={setPolicy} clusters={clusters.items} />
          )}
        </div>
        <div className="stack">
          {!override && <MovesPanel place={place} change={{ policy: named(shown) }} />}
          <PolicyPreview policy={shown} clusters={clusters.items} override={override} />
        </div>
      </div>
    </div>
  )
}

function resourceOf(policy: KObject): Resource {
  switch (policy.kind) {
    case 'ClusterPropagationPolicy':
      return CLUSTER_POLICIES
    case 'OverridePolicy':
      return OVERRIDES
    case 'ClusterOverridePolicy':
      return CLUSTER_OVERRIDES
    default:
      return POLICIES
  }
}

/** What people write in a policy; its revision stays, so that nobody's change is lost. */
function withoutMachinery({ status, ...policy }: KObject): KObject {
  const { managedFields, ...metadata } = policy.metadata
  void [status, managedFields]
  return { ...policy, metadata }
}

/** A policy has to have a name to be planned with; the one being written may not have one yet. */
function named(policy: KObject): KObject {
  return policy.metadata.name ? policy : { ...policy, metadata: { ...policy.metadata, name: 'new-policy' } }
}

function readYaml(text: string): KObject | undefined {
  try {
    const read = parse(text)
    return read && typeof read === 'object' && read.metadata ? (read as KObject) : undefined
  } catch {
    return undefined
  }
}

function firstSelector(query: URLSearchParams): Loose {
  return { apiVersion: query.get('api') ?? 'apps/v1', kind: query.get('kind') ?? 'Deployment', ...(query.get('name') && { name: query.get('name') }) }
}

function firstPolicy(query: URLSearchParams): KObject {
  return {
    apiVersion: 'policy.karmada.io/v1alpha1', kind: 'PropagationPolicy',
    metadata: { name: query.get('name') ?? '', namespace: query.get('ns') ?? 'default' },
    spec: { resourceSelectors: [firstSelector(query)], placement: { replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted', weightPreference: { dynamicWeight: 'AvailableReplicas' } } } },
  }
}

function firstOverride(query: URLSearchParams): KObject {
  return {
    apiVersion: 'policy.karmada.io/v1alpha1', kind: 'OverridePolicy',
    metadata: { name: query.get('name') ?? '', namespace: query.get('ns') ?? 'default' },
    spec: { resourceSelectors: [firstSelector(query)], overrideRules: [{ targetCluster: { clusterNames: [] }, overriders: { plaintext: [{ path: '/spec/replicas', operator: 'replace', value: 2 }] } }] },
  }
}
