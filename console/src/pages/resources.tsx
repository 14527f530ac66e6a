// Objects of one kind, in the instance, in one member, or in all members.

import { Columns3, Plus } from 'lucide-react'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { useMay } from '../api/access'
import { useKinds } from '../api/discovery'
import { useList, useLive } from '../api/hooks'
import { CLUSTER_NAME, hasIndex } from '../api/index-search'
import type { Entry, Source } from '../api/live'
import { base, CLUSTERS, NAMESPACES, path, type Place, type Resource, withQuery } from '../api/paths'
import type { Column } from '../api/types'
import { t } from '../i18n'
import { type Tone, toneOf } from '../model/health'
import { groupOf, listLink, objectLink } from '../model/links'
import { isAge, matches, trackOf, wordsOf } from '../model/rows'
import { SECTIONS, sectionOf } from '../model/sections'
import { useHere } from '../place'
import { Age, AsOf, Button, Empty, Failure, Filter, Pill } from '../ui/parts'
import { NameLink } from '../ui/name-link'
import { Table, type TableColumn } from '../ui/table'
import { CreateDialog } from './create'

const PAGE = 500
const EVERYWHERE = '*'

export default function Resources({ group: part, version, plural }: { group: string; version: string; plural: string }) {
  const resource = useMemo<Resource>(() => ({ group: groupOf(part), version, plural }), [part, version, plural])
  const here = useHere()
  const [query, setQuery] = useSearchParams()
  const member = query.get('m') ?? ''
  const everywhere = member === EVERYWHERE
  const place = useMemo<Place>(() => ({ instance: here.place.instance, member: everywhere || !member ? undefined : member }), [here.place.instance, member, everywhere])
  const kinds = useKinds(place)
  const kind = kinds.value?.find((one) => one.group === resource.group && one.plural === plural)
  const namespace = kind?.namespaced === false ? '' : (query.get('ns') ?? '')
  const text = query.get('q') ?? ''
  const [wide, setWide] = useState(false)
  const [creating, setCreating] = useState(false)
  const source = useMemo(() => sourceOf(place, resource, namespace, everywhere), [place, resource, namespace, everywhere])
  const { snapshot, live } = useLive(source)
  const [wantAll, setWantAll] = useState(false)
  const words = useMemo(() => wordsOf(text), [text])
  const rows = useMemo(() => (words.length ? snapshot.entries.filter((entry) => matches(entry, words)) : snapshot.entries), [snapshot.entries, words])
  const mayCreate = useMay(everywhere ? null : place, { verb: 'create', group: resource.group, resource: plural, ...(namespace && { namespace }) })
  useEffect(() => {
    if ((wantAll || words.length > 0) && snapshot.hasMore && !snapshot.loadingMore) void live?.loadMore()
  }, [wantAll, words.length, snapshot.hasMore, snapshot.loadingMore, live])
  const columns = useColumns(snapshot.columns, snapshot.entries, place, resource, { wide, showNamespace: kind?.namespaced !== false && !namespace, everywhere })
  const set = useSetter(setQuery)
  const total = snapshot.entries.length + (snapshot.hasMore ? snapshot.remaining : 0)
  const onEnd = useCallback(() => void live?.loadMore(), [live])
  return (
    <div className="page full">
      <div className="title">
        <h1>{kind?.kind ?? plural}</h1>
        {snapshot.loaded && <span className="count">{words.length ? `${rows.length} / ${total}` : total.toLocaleString('en')}</span>}
        {snapshot.hasMore && <span className="tiny faint">{t('rows.loaded', { n: snapshot.entries.length.toLocaleString('en') })}</span>}
        <span className="end">
          <AsOf at={snapshot.at} live={snapshot.live} />
          {mayCreate && (
            <Button look="primary" onClick={() => setCreating(true)}>
              <Plus size={15} aria-hidden="true" /> {t('create')}
            </Button>
          )}
        </span>
      </div>
      <KindTabs resource={resource} place={here.place} member={member} namespace={namespace} />
      <div className="bar">
        <Filter label={t('rows.filter')} value={text} onChange={(value) => set('q', value)} />
        <WherePicker member={member} onChange={(value) => set('m', value)} />
        {kind?.namespaced !== false && !everywhere && <NamespacePicker place={place} value={namespace} onChange={(value) => set('ns', value)} />}
        <Button look="icon" aria-pressed={wide} aria-label={t('rows.wide')} title={t('rows.wide')} onClick={() => setWide(!wide)}>
          <Columns3 size={15} aria-hidden="true" />
        </Button>
      </div>
      {snapshot.error && <Failure error={snapshot.error} />}
      {!(snapshot.error && snapshot.entries.length === 0) && (
        <div className="panel fill-panel">
          <Table
            label={kind?.kind ?? plural}
            columns={columns}
            rows={rows}
            keyOf={(row) => row.key}
            loading={!snapshot.loaded}
            total={total}
            onEnd={onEnd}
            onSort={() => setWantAll(true)}
            empty={<Nothing filtered={words.length > 0} kind={kind?.kind ?? plural} onClear={() => set('q', '')} />}
          />
        </div>
      )}
      {creating && !kinds.loading && <CreateDialog place={place} resource={resource} kind={kind?.kind ?? ''} namespaced={kind?.namespaced !== false} namespace={namespace || 'default'} onClose={() => setCreating(false)} />}
    </div>
  )
}

function sourceOf(place: Place, resource: Resource, namespace: string, everywhere: boolean): Source {
  if (!everywhere) return { url: path(place, resource, { namespace: namespace || undefined }), table: true, pageSize: PAGE }
  const tail = path({ instance: 'root' }, resource)
  const url = `${base(place)}/apis/clusterpedia.io/v1beta1/resources${tail}`
  return { url: withQuery(url, { withContinue: true, withRemainingCount: true, namespaces: namespace }), table: true, pageSize: PAGE, watch: false }
}

function useSetter(setQuery: ReturnType<typeof useSearchParams>[1]) {
  return useCallback(
    (name: string, value: string) =>
      setQuery(
        (before) => {
          if (value) before.set(name, value)
          else before.delete(name)
          return before
        },
        { replace: true },
      ),
    [setQuery],
  )
}

interface Looks {
  wide: boolean
  showNamespace: boolean
  everywhere: boolean
}

function useColumns(columns: Column[] | undefined, entries: Entry[], place: Place, resource: Resource, looks: Looks): TableColumn<Entry>[] {
  // Widths are taken from the first rows and then kept, so that nothing jumps while changes come in.
  const sample = entries.length > 0
  return useMemo(() => {
    const out: TableColumn<Entry>[] = []
    const shown = columns ?? [{ name: 'Name', type: 'string', format: 'name', priority: 0 }]
    shown.forEach((column, index) => {
      if (column.priority > 0 && !looks.wide) return
      if (/^(cluster|namespace)$/i.test(column.name) && index > 0 && looks.showNamespace) return
      out.push(columnOf(column, index, entries, place, resource))
      if (isName(column)) {
        if (looks.showNamespace) out.push(textColumn('namespace', t('namespace'), (row) => row.object.metadata.namespace ?? ''))
        if (looks.everywhere) out.push(textColumn('cluster', t('cluster'), clusterOf))
      }
    })
    return out
  }, [columns, sample, place, resource, looks.wide, looks.showNamespace, looks.everywhere])
}

function isName(column: Column): boolean {
  return column.format === 'name' || column.name === 'Name'
}

function clusterOf(row: Entry): string {
  return row.object.metadata.annotations?.[CLUSTER_NAME] ?? ''
}

function textColumn(id: string, title: string, of: (row: Entry) => string): TableColumn<Entry> {
  return { id, title, width: 'minmax(110px, 1fr)', by: of, cell: (row) => <span title={of(row)}>{of(row)}</span> }
}

function columnOf(column: Column, index: number, entries: Entry[], place: Place, resource: Resource): TableColumn<Entry> {
  const value = (row: Entry) => row.cells?.[index]
  const plain: TableColumn<Entry> = {
    id: `${index}`, title: column.name, hint: column.description, width: trackOf(column, index, entries), right: column.type === 'integer',
    by: (row) => (typeof value(row) === 'number' ? value(row) : String(value(row) ?? '')),
    cell: (row) => <Cell value={value(row)} />,
  }
  if (isName(column)) {
    return {
      ...plain,
      by: (row) => row.object.metadata.name,
      cell: (row) => {
        const { name, namespace } = row.object.metadata
        const member = clusterOf(row)
        const where = member && member !== place.instance ? { ...place, member: member.split('/').pop() } : place
        return <NameLink href={objectLink(where, resource, namespace, name)} name={name} />
      },
    }
  }
  if (isAge(column)) {
    return { ...plain, right: true, by: (row) => -Date.parse(row.object.metadata.creationTimestamp ?? ''), cell: (row) => <Age since={row.object.metadata.creationTimestamp} /> }
  }
  return plain
}

function Cell({ value }: { value: unknown }) {
  const text = value === null || value === undefined || value === '' ? '—' : String(value)
  const tone = toneOf(text) ?? partial(text)
  if (tone) {
    return (
      <Pill tone={tone} plain>
        {text}
      </Pill>
    )
  }
  return <span title={text}>{text}</span>
}

/** `2/3` is not yet well. */
function partial(text: string): Tone | undefined {
  const match = /^(\d+)\/(\d+)$/.exec(text)
  if (!match || Number(match[1]) >= Number(match[2])) return undefined
  return match[1] === '0' ? 'bad' : 'warn'
}

function KindTabs({ resource, place, member, namespace }: { resource: Resource; place: Place; member: string; namespace: string }) {
  const kinds = useKinds(member && member !== EVERYWHERE ? { ...place, member } : place)
  const section = sectionOf(resource)
  if (!section || !kinds.value) return null
  const tabs = SECTIONS[section].map((one) => kinds.value?.find((kind) => kind.group === one.group && kind.plural === one.plural)).filter((kind) => kind !== undefined)
  return (
    <nav className="tabs" aria-label={t('nav.kinds')}>
      {tabs.map((kind) => (
        <Link key={kind.plural} href={listLink(place, kind, { m: member, ns: namespace })} aria-current={kind.plural === resource.plural ? 'page' : undefined}>
          {kind.kind}
        </Link>
      ))}
    </nav>
  )
}

function WherePicker({ member, onChange }: { member: string; onChange: (value: string) => void }) {
  const { place, fleet, kinds } = useHere()
  const clusters = useList(fleet ? place : null, CLUSTERS)
  if (!fleet) return null
  return (
    <select className="select" style={{ maxWidth: 220 }} aria-label={t('where')} value={member} onChange={(event) => onChange(event.target.value)}>
      <option value="">{t('where.templates')}</option>
      {hasIndex(kinds) && <option value={EVERYWHERE}>{t('where.everywhere')}</option>}
      {member && member !== EVERYWHERE && !clusters.items.some((one) => one.metadata.name === member) && <option value={member}>{member}</option>}
      <optgroup label={t('nav.clusters')}>
        {clusters.items.map((cluster) => (
          <option key={cluster.metadata.name}>{cluster.metadata.name}</option>
        ))}
      </optgroup>
    </select>
  )
}

export function NamespacePicker({ place, value, onChange, all = true }: { place: Place; value: string; onChange: (value: string) => void; all?: boolean }) {
  const namespaces = useList(place, NAMESPACES)
  const names = namespaces.items.map((one) => one.metadata.name)
  return (
    <select className="select" style={{ maxWidth: 220 }} aria-label={t('namespace')} value={value} onChange={(event) => onChange(event.target.value)}>
      {all && <option value="">{t('namespace.all')}</option>}
      {value && !names.includes(value) && <option>{value}</option>}
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  )
}

function Nothing({ filtered, kind, onClear }: { filtered: boolean; kind: string; onClear: () => void }) {
  const [location] = useLocation()
  if (filtered) return <Empty title={t('filter.nothing')} action={<Button onClick={onClear}>{t('filter.clear')}</Button>} />
  return (
    <Empty key={location} title={t('rows.none', { kind })}>
      {t('rows.none.detail')}
    </Empty>
  )
}
