// The usual parts of a policy as fields. What the form does not show stays as it is.

import { Plus, Trash2 } from 'lucide-react'
import type { KObject, Loose } from '../api/types'
import { t } from '../i18n'
import { useHere } from '../place'
import { Button, Field, Segments } from '../ui/parts'
import { NamespacePicker } from './resources'

interface FormProps {
  policy: KObject
  onChange: (policy: KObject) => void
  clusters: KObject[]
}

const KINDS: [string, string][] = [
  ['apps/v1', 'Deployment'], ['apps/v1', 'StatefulSet'], ['apps/v1', 'DaemonSet'], ['batch/v1', 'Job'], ['batch/v1', 'CronJob'], ['v1', 'Service'], ['v1', 'ConfigMap'], ['v1', 'Secret'], ['networking.k8s.io/v1', 'Ingress'],
]

export function PropagationForm({ policy, onChange, clusters }: FormProps) {
  const placement = policy.spec?.placement ?? {}
  const spec = (change: object) => onChange({ ...policy, spec: { ...policy.spec, ...change } })
  const place = (change: object) => spec({ placement: { ...placement, ...change } })
  return (
    <div className="body stack loose">
      <NameFields policy={policy} onChange={onChange} />
      <Selectors list={policy.spec?.resourceSelectors ?? []} onChange={(resourceSelectors) => spec({ resourceSelectors })} />
      <fieldset className="stack">
        <legend>{t('policy.where')}</legend>
        <ClusterChoice clusters={clusters} chosen={placement.clusterAffinity?.clusterNames ?? []} onChange={(names) => place({ clusterAffinity: names.length ? { ...placement.clusterAffinity, clusterNames: names } : withoutNames(placement.clusterAffinity) })} />
        <Spread list={placement.spreadConstraints ?? []} onChange={(list) => place({ spreadConstraints: list.length ? list : undefined })} />
      </fieldset>
      <fieldset className="stack">
        <legend>{t('policy.replicas')}</legend>
        <Division scheduling={placement.replicaScheduling} onChange={(replicaScheduling) => place({ replicaScheduling })} chosen={placement.clusterAffinity?.clusterNames ?? []} />
      </fieldset>
      <div className="grid two">
        <Field label={t('policy.priority')} hint={t('policy.priority.hint')}>
          {(id) => <input id={id} type="number" className="input" value={policy.spec?.priority ?? 0} onChange={(event) => spec({ priority: Number(event.target.value) })} />}
        </Field>
        <Field label={t('policy.conflict')} hint={t('policy.conflict.hint')}>
          {(id) => (
            <select id={id} className="select" value={policy.spec?.conflictResolution ?? 'Abort'} onChange={(event) => spec({ conflictResolution: event.target.value })}>
              <option value="Abort">{t('policy.abort')}</option>
              <option value="Overwrite">{t('policy.overwrite')}</option>
            </select>
          )}
        </Field>
      </div>
      <label className="check">
        <input type="checkbox" checked={policy.spec?.propagateDeps ?? false} onChange={(event) => spec({ propagateDeps: event.target.checked || undefined })} /> {t('policy.deps')}
      </label>
      <label className="check">
        <input type="checkbox" checked={policy.spec?.preemption === 'Always'} onChange={(event) => spec({ preemption: event.target.checked ? 'Always' : undefined })} /> {t('policy.preempt')}
      </label>
    </div>
  )
}

function withoutNames(affinity: Loose): Loose {
  if (!affinity) return undefined
  const { clusterNames, ...rest } = affinity
  void clusterNames
  return Object.keys(rest).length ? rest : undefined
}

function NameFields({ policy, onChange }: { policy: KObject; onChange: (policy: KObject) => void }) {
  const { place } = useHere()
  const meta = (change: object) => onChange({ ...policy, metadata: { ...policy.metadata, ...change } })
  // What is there keeps its name and place.
  if (policy.metadata.uid) return null
  return (
    <div className="grid two">
      <Field label={t('name')}>{(id) => <input id={id} className="input" autoComplete="off" spellCheck={false} value={policy.metadata.name} onChange={(event) => meta({ name: event.target.value })} />}</Field>
      <div className="field">
        <span className="label">{t('namespace')}</span>
        <NamespacePicker place={place} value={policy.metadata.namespace ?? ''} onChange={(namespace) => meta({ namespace })} all={false} />
      </div>
    </div>
  )
}

function Selectors({ list, onChange }: { list: Loose[]; onChange: (list: Loose[]) => void }) {
  const set = (index: number, change: object) => onChange(list.map((one, at) => (at === index ? { ...one, ...change } : one)))
  return (
    <fieldset className="stack">
      <legend>{t('policy.what')}</legend>
      {list.map((one, index) => (
        <div className="row wrap" key={index}>
          <select className="select" aria-label={t('kind')} value={`${one.apiVersion} ${one.kind}`} onChange={(event) => { const [apiVersion, kind] = event.target.value.split(' '); set(index, { apiVersion, kind }) }}>
            {!KINDS.some(([api, kind]) => api === one.apiVersion && kind === one.kind) && <option>{`${one.apiVersion} ${one.kind}`}</option>}
            {KINDS.map(([api, kind]) => (
              <option key={kind} value={`${api} ${kind}`}>{kind}</option>
            ))}
          </select>
          <input className="input grow" aria-label={t('name')} placeholder={t('policy.anyname')} value={one.name ?? ''} onChange={(event) => set(index, { name: event.target.value || undefined })} />
          <input className="input grow" aria-label={t('labels')} placeholder="app=web" value={labelText(one.labelSelector)} onChange={(event) => set(index, { labelSelector: labelSelector(event.target.value) })} />
          <Button look="bare icon" aria-label={t('remove')} disabled={list.length === 1} onClick={() => onChange(list.filter((_, at) => at !== index))}>
            <Trash2 size={15} aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div>
        <Button look="small" onClick={() => onChange([...list, { apiVersion: 'apps/v1', kind: 'Deployment' }])}>
          <Plus size={13} aria-hidden="true" /> {t('policy.addselector')}
        </Button>
      </div>
    </fieldset>
  )
}

function labelText(selector: Loose): string {
  return Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => (value === '' ? key : `${key}=${value}`)).join(',')
}

function labelSelector(text: string): Loose {
  const pairs = text.split(',').filter((part) => part.trim()).map((part) => { const [key = '', ...rest] = part.trim().split('='); return [key, rest.join('=')] })
  return pairs.length ? { matchLabels: Object.fromEntries(pairs) } : undefined
}

function ClusterChoice({ clusters, chosen, onChange }: { clusters: KObject[]; chosen: string[]; onChange: (names: string[]) => void }) {
  const names = [...new Set([...clusters.map((one) => one.metadata.name), ...chosen])]
  return (
    <div className="field">
      <span className="label">{t('policy.clusters')}</span>
      <div className="choices" role="group" aria-label={t('policy.clusters')}>
        {names.map((name) => (
          <label className="check" key={name} title={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => onChange(event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name))} />
            <span className="cut">{name}</span>
          </label>
        ))}
      </div>
      <span className="hint">{chosen.length === 0 ? t('policy.clusters.any') : t('policy.clusters.chosen', { n: chosen.length })}</span>
    </div>
  )
}

function Spread({ list, onChange }: { list: Loose[]; onChange: (list: Loose[]) => void }) {
  const set = (index: number, change: object) => onChange(list.map((one, at) => (at === index ? { ...one, ...change } : one)))
  return (
    <div className="stack tight">
      {list.map((one, index) => (
        <div className="row wrap small" key={index}>
          {t('policy.spread')}
          <select className="select" aria-label={t('policy.spread')} value={one.spreadByField ?? 'cluster'} onChange={(event) => set(index, { spreadByField: event.target.value })}>
            {['cluster', 'region', 'zone', 'provider'].map((field) => (
              <option key={field}>{field}</option>
            ))}
          </select>
          <input type="number" min={1} className="input narrow" aria-label={t('policy.least')} value={one.minGroups ?? 1} onChange={(event) => set(index, { minGroups: Number(event.target.value) })} />–
          <input type="number" min={1} className="input narrow" aria-label={t('policy.most')} value={one.maxGroups ?? ''} onChange={(event) => set(index, { maxGroups: event.target.value ? Number(event.target.value) : undefined })} />
          <Button look="bare icon small" aria-label={t('remove')} onClick={() => onChange(list.filter((_, at) => at !== index))}>
            <Trash2 size={14} aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div>
        <Button look="small" onClick={() => onChange([...list, { spreadByField: list.length ? 'region' : 'cluster', minGroups: 1 }])}>
          <Plus size={13} aria-hidden="true" /> {t('policy.addspread')}
        </Button>
      </div>
    </div>
  )
}

type Way = 'duplicated' | 'dynamic' | 'static' | 'aggregated'

function wayOf(scheduling: Loose): Way {
  if (!scheduling || scheduling.replicaSchedulingType === 'Duplicated') return 'duplicated'
  if (scheduling.replicaDivisionPreference === 'Aggregated') return 'aggregated'
  return scheduling.weightPreference?.staticWeightList ? 'static' : 'dynamic'
}

function Division({ scheduling, onChange, chosen }: { scheduling: Loose; onChange: (scheduling: Loose) => void; chosen: string[] }) {
  const way = wayOf(scheduling)
  const weights: Loose[] = scheduling?.weightPreference?.staticWeightList ?? []
  const make: Record<Way, Loose> = {
    duplicated: { replicaSchedulingType: 'Duplicated' },
    dynamic: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted', weightPreference: { dynamicWeight: 'AvailableReplicas' } },
    static: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted', weightPreference: { staticWeightList: chosen.map((name) => ({ targetCluster: { clusterNames: [name] }, weight: 1 })) } },
    aggregated: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Aggregated' },
  }
  const setWeight = (index: number, weight: number) =>
    onChange({ ...scheduling, weightPreference: { staticWeightList: weights.map((one, at) => (at === index ? { ...one, weight } : one)) } })
  return (
    <>
      <Segments<Way>
        label={t('policy.replicas')}
        value={way}
        onChange={(next) => onChange(make[next])}
        options={[{ value: 'duplicated', text: t('policy.duplicated') }, { value: 'dynamic', text: t('policy.dynamic') }, { value: 'static', text: t('policy.static') }, { value: 'aggregated', text: t('policy.aggregated') }]}
      />
      <span className="hint small muted">{t(`policy.${way}.hint`)}</span>
      {way === 'static' &&
        weights.map((one, index) => (
          <div className="row small" key={index}>
            <input type="number" min={1} className="input narrow" aria-label={t('policy.weight')} value={one.weight} onChange={(event) => setWeight(index, Math.max(1, Number(event.target.value)))} />
            <span className="cut">{one.targetCluster?.clusterNames?.join(', ')}</span>
          </div>
        ))}
      {way === 'static' && weights.length === 0 && <span className="small muted">{t('policy.static.none')}</span>}
    </>
  )
}

export function OverrideForm({ policy, onChange, clusters }: FormProps) {
  const rules: Loose[] = policy.spec?.overrideRules ?? []
  const rule = rules[0] ?? { overriders: {} }
  const patches: Loose[] = rule.overriders?.plaintext ?? []
  const spec = (change: object) => onChange({ ...policy, spec: { ...policy.spec, ...change } })
  const setRule = (change: object) => spec({ overrideRules: [{ ...rule, ...change }, ...rules.slice(1)] })
  const setPatches = (plaintext: Loose[]) => setRule({ overriders: { ...rule.overriders, plaintext } })
  const set = (index: number, change: object) => setPatches(patches.map((one, at) => (at === index ? { ...one, ...change } : one)))
  return (
    <div className="body stack loose">
      <NameFields policy={policy} onChange={onChange} />
      <Selectors list={policy.spec?.resourceSelectors ?? []} onChange={(resourceSelectors) => spec({ resourceSelectors })} />
      <fieldset className="stack">
        <legend>{t('policy.where')}</legend>
        <ClusterChoice clusters={clusters} chosen={rule.targetCluster?.clusterNames ?? []} onChange={(clusterNames) => setRule({ targetCluster: { ...rule.targetCluster, clusterNames } })} />
      </fieldset>
      <fieldset className="stack">
        <legend>{t('policy.changes')}</legend>
        {patches.map((one, index) => (
          <div className="row wrap" key={index}>
            <select className="select" aria-label={t('policy.operator')} value={one.operator} onChange={(event) => set(index, { operator: event.target.value })}>
              {['add', 'replace', 'remove'].map((operator) => (
                <option key={operator}>{operator}</option>
              ))}
            </select>
            <input className="input grow mono" aria-label={t('policy.path')} placeholder="/spec/replicas" value={one.path} onChange={(event) => set(index, { path: event.target.value })} />
            {one.operator !== 'remove' && <input className="input grow mono" aria-label={t('policy.value')} value={typeof one.value === 'string' ? one.value : JSON.stringify(one.value ?? '')} onChange={(event) => set(index, { value: valueOf(event.target.value) })} />}
            <Button look="bare icon" aria-label={t('remove')} onClick={() => setPatches(patches.filter((_, at) => at !== index))}>
              <Trash2 size={15} aria-hidden="true" />
            </Button>
          </div>
        ))}
        <div>
          <Button look="small" onClick={() => setPatches([...patches, { path: '/spec/', operator: 'replace', value: '' }])}>
            <Plus size={13} aria-hidden="true" /> {t('policy.addchange')}
          </Button>
        </div>
      </fieldset>
    </div>
  )
}

/** Numbers, booleans and objects as such, anything else as text. */
function valueOf(text: string): unknown {
  if (!/^(-?\d|true$|false$|[[{])/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
