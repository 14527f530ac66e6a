// Every template that is spread, and how far each has come.

import { GitFork } from 'lucide-react'
import { useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { useList } from '../api/hooks'
import { BINDINGS, CLUSTER_BINDINGS } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { bindingHealth, bindingReplicas } from '../model/binding'
import { objectLink } from '../model/links'
import { resourceOf } from '../model/reference'
import { useHere } from '../place'
import { Age, AsOf, Button, Empty, Failure, Filter, HealthPill } from '../ui/parts'
import { NameLink } from '../ui/name-link'
import { Table, type TableColumn } from '../ui/table'

export default function Propagation() {
  const { place } = useHere()
  const bindings = useList(place, BINDINGS)
  const global = useList(place, CLUSTER_BINDINGS)
  const [query, setQuery] = useSearchParams()
  const text = (query.get('q') ?? '').toLowerCase()
  const only = query.get('status') ?? ''
  const all = useMemo(() => [...bindings.items, ...global.items], [bindings.items, global.items])
  const rows = useMemo(() => all.filter((binding) => fits(binding, text, only)), [all, text, only])
  const counts = useMemo(() => {
    const out = new Map<string, number>()
    for (const binding of all) {
      const { word } = bindingHealth(binding)
      out.set(word, (out.get(word) ?? 0) + 1)
    }
    return out
  }, [all])
  const set = (name: string, value: string) =>
    setQuery(
      (before) => {
        if (value) before.set(name, value)
        else before.delete(name)
        return before
      },
      { replace: true },
    )
  const columns = useColumns()
  return (
    <div className="page full">
      <div className="title">
        <h1>{t('nav.propagation')}</h1>
        {bindings.loaded && <span className="count">{all.length}</span>}
        <span className="end">
          <AsOf at={bindings.at} live={bindings.live} />
        </span>
      </div>
      {bindings.error && <Failure error={bindings.error} />}
      <div className="bar">
        <Filter label={t('propagation.filter')} value={query.get('q') ?? ''} onChange={(value) => set('q', value)} />
        <select className="select" aria-label={t('status')} value={only} onChange={(event) => set('status', event.target.value)}>
          <option value="">{t('status.all')}</option>
          {[...counts].map(([word, count]) => (
            <option key={word} value={word}>{`${word} (${count})`}</option>
          ))}
        </select>
      </div>
      <div className="panel fill-panel">
        <Table
          label={t('nav.propagation')}
          columns={columns}
          rows={rows}
          keyOf={(row) => row.metadata.uid ?? row.metadata.name}
          loading={!bindings.loaded}
          empty={
            all.length > 0 ? (
              <Empty title={t('filter.nothing')} action={<Button onClick={() => setQuery({}, { replace: true })}>{t('filter.clear')}</Button>} />
            ) : (
              <Empty icon={<GitFork size={34} aria-hidden="true" />} title={t('propagation.none')}>
                {t('propagation.none.detail')}
              </Empty>
            )
          }
        />
      </div>
    </div>
  )
}

function fits(binding: KObject, text: string, only: string): boolean {
  if (only && bindingHealth(binding).word !== only) return false
  if (!text) return true
  const { kind, name, namespace } = binding.spec?.resource ?? {}
  const clusters = (binding.spec?.clusters ?? []).map((target: { name: string }) => target.name)
  return [kind, name, namespace, ...clusters].join(' ').toLowerCase().includes(text)
}

function useColumns(): TableColumn<KObject>[] {
  const { place } = useHere()
  return useMemo(() => {
    const reference = (row: KObject) => row.spec?.resource ?? {}
    const targets = (row: KObject): { name: string; replicas?: number }[] => row.spec?.clusters ?? []
    return [
      {
        id: 'name', title: t('tree.template'), width: 'minmax(200px, 2fr)', by: (row) => reference(row).name,
        cell: (row) => <NameLink href={objectLink(place, resourceOf(reference(row)), reference(row).namespace, reference(row).name, { tab: 'tree' })} name={reference(row).name} />,
      },
      { id: 'kind', title: t('kind'), width: '130px', by: (row) => reference(row).kind, cell: (row) => reference(row).kind },
      { id: 'namespace', title: t('namespace'), width: 'minmax(110px, 1fr)', by: (row) => row.metadata.namespace ?? '', cell: (row) => row.metadata.namespace ?? '—' },
      { id: 'health', title: t('status'), width: '140px', by: (row) => bindingHealth(row).word, cell: (row) => <HealthPill health={bindingHealth(row)} plain /> },
      { id: 'ready', title: t('ready'), width: '80px', right: true, cell: (row) => { const count = bindingReplicas(row); return count ? `${count.ready}/${count.wanted}` : '—' } },
      {
        id: 'clusters', title: t('clusters'), width: 'minmax(200px, 2.4fr)', by: (row) => targets(row).length,
        cell: (row) => {
          const text = targets(row).map((target) => (target.replicas ? `${target.name} ×${target.replicas}` : target.name)).join(', ')
          return <span className="muted" title={text}>{targets(row).length > 3 ? `${targets(row).length} · ` : ''}{text || '—'}</span>
        },
      },
      { id: 'why', title: t('why'), width: 'minmax(160px, 2fr)', cell: (row) => <span className="muted" title={bindingHealth(row).why}>{bindingHealth(row).why ?? ''}</span> },
      { id: 'age', title: t('age'), width: '80px', right: true, by: (row) => -Date.parse(row.metadata.creationTimestamp ?? ''), cell: (row) => <Age since={row.metadata.creationTimestamp} /> },
    ]
  }, [place])
}
