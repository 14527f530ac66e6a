// Members of an instance: a few as cards, hundreds as a heat grid, any number as a table.

import { Globe2, Grid3x3, LayoutGrid, List, Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useMay } from '../api/access'
import { useList } from '../api/hooks'
import { CLUSTERS } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { clusterHealth, clusterUsage } from '../model/health'
import { clusterLink } from '../model/links'
import { bytes, cores } from '../model/quantity'
import { useHere } from '../place'
import { Age, AsOf, Button, Cut, Empty, Failure, Filter, HealthPill, Labels, Meter, Segments } from '../ui/parts'
import { NameLink } from '../ui/name-link'
import { Table, type TableColumn } from '../ui/table'
import { HeatGrid } from './heat-grid'
import { JoinDialog } from './join'
import { ClusterMenu } from './cluster-menu'

type View = 'cards' | 'grid' | 'table'
const MANY = 24

export default function Clusters() {
  const { place } = useHere()
  const clusters = useList(place, CLUSTERS)
  const [query, setQuery] = useSearchParams()
  const [joining, setJoining] = useState(false)
  const mayJoin = useMay(place, { verb: 'create', group: CLUSTERS.group, resource: CLUSTERS.plural })
  const text = query.get('q') ?? ''
  const only = query.get('status') ?? ''
  const view = (query.get('view') as View | null) ?? (clusters.items.length > MANY ? 'grid' : 'cards')
  const set = (name: string, value: string) =>
    setQuery(
      (before) => {
        if (value) before.set(name, value)
        else before.delete(name)
        return before
      },
      { replace: true },
    )
  const shown = useMemo(() => filtered(clusters.items, text, only), [clusters.items, text, only])
  const counts = useMemo(() => countWords(clusters.items), [clusters.items])
  // Nothing to count or to filter when the list was refused.
  const refused = clusters.error !== undefined && clusters.items.length === 0
  return (
    <div className={`page${view === 'table' ? ' full' : ''}`}>
      <div className="title">
        <h1>{t('nav.clusters')}</h1>
        {clusters.loaded && !refused && <span className="count">{clusters.items.length}</span>}
        <span className="end">
          <AsOf at={clusters.at} live={clusters.live} />
          {mayJoin && (
            <Button look="primary" onClick={() => setJoining(true)}>
              <Plus size={15} aria-hidden="true" /> {t('clusters.join')}
            </Button>
          )}
        </span>
      </div>
      {clusters.error && <Failure error={clusters.error} />}
      <div className="bar" hidden={refused}>
        <Filter label={t('clusters.filter')} value={text} onChange={(value) => set('q', value)} />
        <select className="select" aria-label={t('status')} value={only} onChange={(event) => set('status', event.target.value)}>
          <option value="">{t('clusters.all')}</option>
          {[...counts].map(([word, count]) => (
            <option key={word} value={word}>{`${word} (${count})`}</option>
          ))}
        </select>
        <span className="end">
          <Segments<View>
            label={t('view')}
            value={view}
            onChange={(value) => set('view', value)}
            options={[
              { value: 'cards', text: <><LayoutGrid size={14} aria-hidden="true" /> {t('view.cards')}</> },
              { value: 'grid', text: <><Grid3x3 size={14} aria-hidden="true" /> {t('view.grid')}</> },
              { value: 'table', text: <><List size={14} aria-hidden="true" /> {t('view.table')}</> },
            ]}
          />
        </span>
      </div>
      {clusters.loaded && clusters.items.length === 0 && !clusters.error ? (
        <div className="panel">
          <Empty
            icon={<Globe2 size={34} aria-hidden="true" />}
            title={t('clusters.none')}
            action={mayJoin && <Button look="primary" onClick={() => setJoining(true)}>{t('clusters.join')}</Button>}
          >
            {t('clusters.none.detail')}
          </Empty>
        </div>
      ) : view === 'cards' ? (
        <div className="grid cards">
          {shown.map((cluster) => (
            <ClusterCard key={cluster.metadata.name} cluster={cluster} />
          ))}
        </div>
      ) : view === 'grid' ? (
        <HeatGrid clusters={shown} instance={place.instance} />
      ) : (
        <div className="panel fill-panel">
          <ClusterTable clusters={shown} loading={!clusters.loaded} />
        </div>
      )}
      {clusters.items.length > 0 && shown.length === 0 && <Empty title={t('filter.nothing')} action={<Button onClick={() => setQuery({}, { replace: true })}>{t('filter.clear')}</Button>} />}
      {joining && <JoinDialog instance={place.instance} onClose={() => setJoining(false)} />}
    </div>
  )
}

function filtered(clusters: KObject[], text: string, only: string): KObject[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return clusters.filter((cluster) => {
    if (only && clusterHealth(cluster).word !== only) return false
    if (words.length === 0) return true
    const labels = Object.entries(cluster.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)
    const hay = [cluster.metadata.name, cluster.spec?.region, cluster.spec?.provider, cluster.spec?.zone, cluster.status?.kubernetesVersion, ...labels].join(' ').toLowerCase()
    return words.every((word) => hay.includes(word))
  })
}

function countWords(clusters: KObject[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const cluster of clusters) {
    const { word } = clusterHealth(cluster)
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return counts
}

function ClusterCard({ cluster }: { cluster: KObject }) {
  const { place } = useHere()
  const { name } = cluster.metadata
  const health = clusterHealth(cluster)
  const cpu = clusterUsage(cluster, 'cpu')
  const memory = clusterUsage(cluster, 'memory')
  const pods = clusterUsage(cluster, 'pods')
  const nodes = cluster.status?.nodeSummary
  return (
    <article className="panel instance-card">
      <header>
        <h2 className="grow cut">
          <Link href={clusterLink(place.instance, name)} className="cover" title={name}>
            {name}
          </Link>
        </h2>
        <HealthPill health={health} />
        <ClusterMenu cluster={cluster} />
      </header>
      <div className="body stack">
        <div className="dotted small muted">
          <span>{cluster.spec?.syncMode}</span>
          {cluster.status?.kubernetesVersion && <Cut>{cluster.status.kubernetesVersion}</Cut>}
          {cluster.spec?.region && <Cut>{cluster.spec.region}</Cut>}
          {cluster.spec?.provider && <Cut>{cluster.spec.provider}</Cut>}
        </div>
        {health.tone === 'bad' && health.why && <p className="small tone-bad toned breaks">{health.why}</p>}
        <div className="dotted small muted">
          <span>{t('clusters.nodes', { ready: nodes?.readyNum ?? 0, total: nodes?.totalNum ?? 0 })}</span>
          <span>{t('clusters.pods', { used: Math.round(pods.used), total: Math.round(pods.total) })}</span>
        </div>
        <Meter label={t('cpu')} {...cpu} format={cores} />
        <Meter label={t('memory')} {...memory} format={bytes} />
        {Object.keys(cluster.metadata.labels ?? {}).length > 0 && <Labels labels={cluster.metadata.labels} most={3} />}
      </div>
    </article>
  )
}

function percent(usage: { used: number; total: number }): number {
  return usage.total > 0 ? Math.round((usage.used / usage.total) * 100) : -1
}

function ClusterTable({ clusters, loading }: { clusters: KObject[]; loading: boolean }) {
  const { place } = useHere()
  const columns = useMemo<TableColumn<KObject>[]>(() => {
    const share = (id: string, title: string): TableColumn<KObject> => ({
      id, title, width: '80px', right: true,
      cell: (row) => { const value = percent(clusterUsage(row, id)); return value < 0 ? '—' : `${value}%` },
      by: (row) => percent(clusterUsage(row, id)),
    })
    return [
      { id: 'name', title: t('name'), width: 'minmax(180px, 2fr)', by: (row) => row.metadata.name, cell: (row) => <NameLink href={clusterLink(place.instance, row.metadata.name)} name={row.metadata.name} /> },
      { id: 'status', title: t('status'), width: '130px', by: (row) => clusterHealth(row).word, cell: (row) => <HealthPill health={clusterHealth(row)} plain /> },
      { id: 'version', title: t('version'), width: 'minmax(110px, 1fr)', by: (row) => row.status?.kubernetesVersion ?? '', cell: (row) => row.status?.kubernetesVersion ?? '—' },
      { id: 'mode', title: t('mode'), width: '80px', by: (row) => row.spec?.syncMode ?? '', cell: (row) => row.spec?.syncMode },
      { id: 'region', title: t('region'), width: 'minmax(100px, 1fr)', by: (row) => row.spec?.region ?? '', cell: (row) => row.spec?.region ?? '—' },
      { id: 'nodes', title: t('nodes'), width: '90px', right: true, by: (row) => row.status?.nodeSummary?.totalNum ?? 0, cell: (row) => `${row.status?.nodeSummary?.readyNum ?? 0}/${row.status?.nodeSummary?.totalNum ?? 0}` },
      share('cpu', t('cpu')), share('memory', t('memory')),
      { id: 'age', title: t('age'), width: '80px', right: true, by: (row) => -Date.parse(row.metadata.creationTimestamp ?? ''), cell: (row) => <Age since={row.metadata.creationTimestamp} /> },
    ]
  }, [place.instance])
  return <Table label={t('nav.clusters')} columns={columns} rows={clusters} keyOf={(row) => row.metadata.name} loading={loading} />
}
