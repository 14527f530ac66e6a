// Policies: what they select, where they put it, and who is affected.

import { Plus, Scale } from 'lucide-react'
import { useMemo } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useMay } from '../api/access'
import { type ListResult, useList } from '../api/hooks'
import { BINDINGS, CLUSTER_BINDINGS, CLUSTER_OVERRIDES, CLUSTER_POLICIES, OVERRIDES, POLICIES, type Resource } from '../api/paths'
import type { KObject, Of } from '../api/types'
import { t } from '../i18n'
import { bindingHealth } from '../model/binding'
import { instanceLink, objectLink } from '../model/links'
import { claimedBy, overriddenBy, placementText, selectorText } from '../model/policy'
import { useHere } from '../place'
import { Age, AsOf, Empty, Failure, Filter, Segments } from '../ui/parts'
import { NameLink } from '../ui/name-link'
import { Table, type TableColumn } from '../ui/table'

type Kind = 'propagation' | 'override'

interface Row {
  policy: KObject
  resource: Resource
  affected: KObject[]
}

export default function Policies() {
  const { place } = useHere()
  const [query, setQuery] = useSearchParams()
  const kind: Kind = query.get('kind') === 'override' ? 'override' : 'propagation'
  const text = query.get('q') ?? ''
  const near = useList(place, kind === 'propagation' ? POLICIES : OVERRIDES)
  const far = useList(place, kind === 'propagation' ? CLUSTER_POLICIES : CLUSTER_OVERRIDES)
  const bindings = useList(place, BINDINGS)
  const global = useList(place, CLUSTER_BINDINGS)
  const mayCreate = useMay(place, { verb: 'create', group: POLICIES.group, resource: POLICIES.plural })
  const rows = useMemo(() => rowsOf(kind, near, far, [...bindings.items, ...global.items], text.toLowerCase()), [kind, near, far, bindings.items, global.items, text])
  const columns = useColumns(kind)
  return (
    <div className="page full">
      <div className="title">
        <h1>{t('nav.policies')}</h1>
        {near.loaded && <span className="count">{rows.length}</span>}
        <span className="end">
          <AsOf at={near.at} live={near.live} />
          {mayCreate && (
            <Link className="button primary" href={instanceLink(place.instance, 'policies/new', { type: kind })}>
              <Plus size={15} aria-hidden="true" /> {t('policy.create')}
            </Link>
          )}
        </span>
      </div>
      {near.error && <Failure error={near.error} />}
      <div className="bar">
        <Segments<Kind> label={t('kind')} value={kind} onChange={(value) => setQuery(value === 'override' ? { kind: 'override' } : {}, { replace: true })} options={[{ value: 'propagation', text: t('policy.propagation') }, { value: 'override', text: t('policy.override') }]} />
        <Filter label={t('policy.filter')} value={text} onChange={(value) => setQuery({ ...(kind === 'override' && { kind }), ...(value && { q: value }) }, { replace: true })} />
      </div>
      <div className="panel fill-panel">
        <Table
          label={t('nav.policies')}
          columns={columns}
          rows={rows}
          keyOf={(row) => row.policy.metadata.uid ?? row.policy.metadata.name}
          loading={!near.loaded || !far.loaded}
          empty={
            text ? (
              <Empty title={t('filter.nothing')} />
            ) : (
              <Empty icon={<Scale size={34} aria-hidden="true" />} title={t(kind === 'override' ? 'policy.none.override' : 'policy.none')}>
                {t(kind === 'override' ? 'policy.none.override.detail' : 'policy.none.detail')}
              </Empty>
            )
          }
        />
      </div>
    </div>
  )
}

function rowsOf(kind: Kind, near: ListResult, far: ListResult, bindings: KObject[], text: string): Row[] {
  const [own, all] = kind === 'propagation' ? [POLICIES, CLUSTER_POLICIES] : [OVERRIDES, CLUSTER_OVERRIDES]
  const affects = kind === 'propagation' ? claimedBy : overriddenBy
  const rows = [...near.items.map((policy) => ({ policy, resource: own })), ...far.items.map((policy) => ({ policy, resource: all }))]
  return rows
    .filter(({ policy }) => !text || [policy.metadata.name, policy.metadata.namespace, ...(policy.spec?.resourceSelectors ?? []).map(selectorText)].join(' ').toLowerCase().includes(text))
    .map((row) => ({ ...row, affected: affects(row.policy, bindings) }))
}

function useColumns(kind: Kind): TableColumn<Row>[] {
  const { place } = useHere()
  return useMemo(() => {
    const columns: TableColumn<Row>[] = [
      {
        id: 'name', title: t('name'), width: 'minmax(180px, 1.6fr)', by: ({ policy }) => policy.metadata.name,
        cell: ({ policy, resource }) => <NameLink href={objectLink(place, resource, policy.metadata.namespace, policy.metadata.name, { tab: 'yaml' })} name={policy.metadata.name} />,
      },
      { id: 'namespace', title: t('namespace'), width: 'minmax(100px, 0.8fr)', by: ({ policy }) => policy.metadata.namespace ?? '', cell: ({ policy }) => policy.metadata.namespace ?? <span className="tag">{t('policy.everywhere')}</span> },
      { id: 'selects', title: t('policy.selects'), width: 'minmax(180px, 1.6fr)', cell: ({ policy }) => <Joined parts={(policy.spec?.resourceSelectors ?? []).map(selectorText)} /> },
      kind === 'propagation'
        ? { id: 'places', title: t('policy.places'), width: 'minmax(180px, 1.6fr)', cell: ({ policy }) => <Joined parts={[placementText(policy.spec?.placement) || t('policy.anywhere')]} /> }
        : { id: 'changes', title: t('policy.changes'), width: 'minmax(180px, 1.6fr)', cell: ({ policy }) => <Joined parts={changes(policy)} /> },
      { id: 'affected', title: t('policy.affected'), width: '150px', by: ({ affected }) => affected.length, cell: ({ affected }) => <Affected affected={affected} /> },
      { id: 'priority', title: t('policy.priority'), width: '80px', right: true, by: ({ policy }) => policy.spec?.priority ?? 0, cell: ({ policy }) => policy.spec?.priority ?? 0 },
      { id: 'age', title: t('age'), width: '80px', right: true, cell: ({ policy }) => <Age since={policy.metadata.creationTimestamp} /> },
    ]
    return columns
  }, [place, kind])
}

function changes(policy: Of<'OverridePolicy'>): string[] {
  const rules = policy.spec?.overrideRules ?? []
  return rules.flatMap((rule) => Object.entries(rule.overriders ?? {}).map(([name, list]) => `${name.replace('Overrider', '')} ×${(list as unknown[]).length ?? 1}`))
}

function Joined({ parts }: { parts: string[] }) {
  const text = parts.join(' · ')
  return (
    <span className="muted" title={text}>
      {text || '—'}
    </span>
  )
}

function Affected({ affected }: { affected: KObject[] }) {
  const bad = affected.filter((binding) => bindingHealth(binding).tone === 'bad').length
  const title = affected.slice(0, 30).map((binding) => `${binding.spec?.resource?.kind} ${binding.metadata.namespace ?? ''}/${binding.spec?.resource?.name}`).join('\n')
  return (
    <span title={title} className="row gap-4">
      <span className="count">{affected.length}</span>
      {bad > 0 && <span className="pill tone-bad">{t('policy.bad', { n: bad })}</span>}
    </span>
  )
}
