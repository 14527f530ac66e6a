// One object: what it is, where it went, its YAML, its events, its logs.

import { lazy, Suspense } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useKinds } from '../api/discovery'
import { useList, useOne } from '../api/hooks'
import { EVENTS, PODS, type Place, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t, type Word } from '../i18n'
import { condition, type Health, podHealth, replicas } from '../model/health'
import { clusterLink, groupOf, listLink, objectLink } from '../model/links'
import { resourceOf } from '../model/reference'
import { useHere } from '../place'
import { Age, AsOf, Bones, Cut, Empty, Failure, HealthPill, Labels, Panel, Tag } from '../ui/parts'
import { Conditions } from './cluster'
import { EventList } from './events'
import { ObjectActions } from './object-actions'
import { PodTable } from './pods'
import { Usage } from './usage'
import { podSelector } from '../model/tree'

const TreeTab = lazy(() => import('./tree'))
const YamlTab = lazy(() => import('./yaml'))
const Logs = lazy(() => import('./logs'))
const Terminal = lazy(() => import('./terminal'))
const FleetLogs = lazy(() => import('./fleet-logs'))
const Differences = lazy(() => import('./differences'))

interface Props {
  group: string
  version: string
  plural: string
  namespace: string
  name: string
}

type Tab = 'summary' | 'tree' | 'differences' | 'yaml' | 'events' | 'pods' | 'logs' | 'terminal'

export default function ObjectPage(props: Props) {
  const here = useHere()
  const [query] = useSearchParams()
  const member = query.get('m') ?? undefined
  const place: Place = { instance: here.place.instance, member }
  const resource: Resource = { group: groupOf(props.group), version: props.version, plural: props.plural }
  const namespace = props.namespace === '-' ? undefined : decodeURIComponent(props.namespace)
  const name = decodeURIComponent(props.name)
  const kinds = useKinds(place)
  const kind = kinds.value?.find((one) => one.group === resource.group && one.plural === resource.plural)
  const { object: found, error, loaded, live, at } = useOne(place, resource, { namespace, name })
  const object = found && !found.kind && kind ? { ...found, kind: kind.kind } : found
  const tabs = tabsOf(object, place, here.fleet)
  const asked = query.get('tab') as Tab | null
  const tab = asked && tabs.includes(asked) ? asked : (tabs[0] ?? 'summary')
  const fills = tab === 'yaml' || tab === 'logs' || tab === 'terminal'
  return (
    <div className={`page${fills ? ' full' : ''}`}>
      <div className="title">
        <div className="grow">
          <div className="sub row wrap gap-4">
            <Link href={listLink(place, resource)}>{object?.kind ?? props.plural}</Link>
            {namespace && (
              <>
                <span>·</span>
                <Cut>{namespace}</Cut>
              </>
            )}
            {member && (
              <>
                <span>·</span>
                <Link href={clusterLink(place.instance, member)} className="cut">
                  {member}
                </Link>
              </>
            )}
          </div>
          <h1 className="row wrap">
            <span className="breaks">{name}</span>
            {object && <ObjectHealth object={object} />}
          </h1>
        </div>
        <span className="end">
          <AsOf at={at} live={live} />
          {object && <ObjectActions object={object} place={place} resource={resource} kind={kind} />}
        </span>
      </div>
      {error && <Failure error={error} />}
      {!object && !error && !loaded && <Bones lines={8} />}
      {object && (
        <>
          <nav className="tabs" aria-label={t('object.tabs')}>
            {tabs.map((one) => (
              <Link key={one} href={objectLink(place, resource, namespace, name, { tab: one })} aria-current={one === tab ? 'page' : undefined} replace>
                {t(`tab.${one}` as Word)}
              </Link>
            ))}
          </nav>
          <Suspense fallback={<Bones lines={6} />}>
            <TabBody tab={tab} object={object} place={place} resource={resource} />
          </Suspense>
        </>
      )}
    </div>
  )
}

function tabsOf(object: KObject | undefined, place: Place, fleet: boolean): Tab[] {
  if (!object) return ['summary']
  const group = object.apiVersion ?? ''
  const spreadable = fleet && !place.member && !/karmada\.io|atoll\.io|^events/.test(group) && !['Event', 'Namespace', 'Node', 'Lease'].includes(object.kind ?? '')
  const isPod = object.kind === 'Pod'
  const hasPods = podSelector(object) !== undefined && (place.member !== undefined || !fleet)
  const farPods = podSelector(object) !== undefined && spreadable
  return [...(spreadable ? (['tree', 'differences'] as Tab[]) : []), 'summary', 'yaml', 'events', ...(hasPods ? (['pods', 'logs'] as Tab[]) : []), ...(farPods ? (['logs'] as Tab[]) : []), ...(isPod ? (['logs', 'terminal'] as Tab[]) : [])]
}

function TabBody({ tab, object, place, resource }: { tab: Tab; object: KObject; place: Place; resource: Resource }) {
  const here = useHere()
  const selector = podSelector(object)
  switch (tab) {
    case 'tree':
      return <TreeTab template={object} resource={resource} />
    case 'differences':
      return <Differences template={object} resource={resource} />
    case 'yaml':
      return <YamlTab object={object} place={place} resource={resource} />
    case 'events':
      return <EventsTab object={object} place={place} />
    case 'pods':
      return <PodsTab place={place} namespace={object.metadata.namespace} selector={selector} />
    case 'logs':
      if (object.kind === 'Pod') return <Logs sources={[{ place, pod: object }]} />
      return here.fleet && !place.member ? <FleetLogs template={object} /> : <WorkloadLogs place={place} namespace={object.metadata.namespace} selector={selector} />
    case 'terminal':
      return <Terminal place={place} pod={object} />
    default:
      return <Summary object={object} place={place} />
  }
}

function ObjectHealth({ object }: { object: KObject }) {
  const health = healthOf(object)
  return health ? <HealthPill health={health} /> : null
}

export function healthOf(object: KObject): Health | undefined {
  if (object.metadata.deletionTimestamp) return { tone: 'busy', word: 'Terminating' }
  if (object.kind === 'Pod') return podHealth(object)
  const count = replicas(object)
  if (count) {
    const word = `${count.ready}/${count.wanted}`
    return { tone: count.ready >= count.wanted ? 'ok' : count.ready === 0 ? 'bad' : 'warn', word }
  }
  const ready = condition(object, 'Ready') ?? condition(object, 'Available')
  if (ready) return { tone: ready.status === 'True' ? 'ok' : 'bad', word: ready.status === 'True' ? ready.type : `Not${ready.type}`, why: ready.message }
  return undefined
}

function Summary({ object, place }: { object: KObject; place: Place }) {
  const { metadata } = object
  const notes = Object.entries(metadata.annotations ?? {}).filter(([key]) => key !== 'kubectl.kubernetes.io/last-applied-configuration')
  return (
    <div className="grid two">
      <Panel title={t('object.facts')}>
        <dl className="facts">
          <dt>{t('age')}</dt>
          <dd>
            <Age since={metadata.creationTimestamp} /> {metadata.creationTimestamp && <span className="faint small">({new Date(metadata.creationTimestamp).toLocaleString()})</span>}
          </dd>
          <dt>UID</dt>
          <dd className="mono small">{metadata.uid}</dd>
          {metadata.generation !== undefined && (
            <>
              <dt>{t('object.generation')}</dt>
              <dd>{metadata.generation}</dd>
            </>
          )}
          <dt>{t('labels')}</dt>
          <dd>
            <Labels labels={metadata.labels} />
          </dd>
          {metadata.ownerReferences?.length ? (
            <>
              <dt>{t('object.owner')}</dt>
              <dd>
                {metadata.ownerReferences.map((owner) => (
                  <Link key={owner.uid} href={objectLink(place, resourceOf(owner), metadata.namespace, owner.name)} className="breaks">
                    {owner.kind} {owner.name}
                  </Link>
                ))}
              </dd>
            </>
          ) : null}
          {metadata.finalizers?.length ? (
            <>
              <dt>{t('object.finalizers')}</dt>
              <dd className="row wrap gap-4">
                {metadata.finalizers.map((one) => (
                  <Tag key={one}>{one}</Tag>
                ))}
              </dd>
            </>
          ) : null}
          <Specifics object={object} place={place} />
        </dl>
      </Panel>
      <Conditions conditions={object.status?.conditions ?? []} />
      {(object.kind === 'Pod' || object.kind === 'Node') && <Usage place={place} of={metadata.namespace ? `namespaces/${metadata.namespace}/pods/${metadata.name}` : `nodes/${metadata.name}`} />}
      {notes.length > 0 && (
        <Panel title={t('annotations')} className="span-all">
          <dl className="facts">
            {notes.map(([key, value]) => (
              <div key={key} style={{ display: 'contents' }}>
                <dt className="mono small breaks">{key}</dt>
                <dd className="mono small breaks clamp">{value}</dd>
              </div>
            ))}
          </dl>
        </Panel>
      )}
    </div>
  )
}

function Specifics({ object, place }: { object: KObject; place: Place }) {
  if (object.kind === 'Pod') {
    return (
      <>
        <dt>{t('node')}</dt>
        <dd>{object.spec?.nodeName ? <Link href={objectLink(place, { group: '', version: 'v1', plural: 'nodes' }, undefined, object.spec.nodeName)}>{object.spec.nodeName}</Link> : '—'}</dd>
        <dt>IP</dt>
        <dd className="mono">{object.status?.podIP ?? '—'}</dd>
        <dt>{t('object.images')}</dt>
        <dd className="mono small">{(object.spec?.containers ?? []).map((one: { image: string }) => one.image).join(', ')}</dd>
      </>
    )
  }
  const containers = object.spec?.template?.spec?.containers
  if (!containers) return null
  return (
    <>
      <dt>{t('object.images')}</dt>
      <dd className="mono small">{containers.map((one: { image: string }) => one.image).join(', ')}</dd>
    </>
  )
}

function EventsTab({ object, place }: { object: KObject; place: Place }) {
  const { name, namespace, uid } = object.metadata
  const events = useList(place, EVENTS, { namespace }, { fieldSelector: `involvedObject.name=${name}` })
  const mine = events.items.filter((event) => !uid || !event.involvedObject?.uid || event.involvedObject.uid === uid)
  return (
    <section className="panel">
      <EventList events={mine} loaded={events.loaded} error={events.error} place={place} of={name} />
    </section>
  )
}

function PodsTab({ place, namespace, selector }: { place: Place; namespace?: string; selector?: string }) {
  const pods = useList(selector ? place : null, PODS, { namespace }, { labelSelector: selector })
  if (pods.error) return <Failure error={pods.error} />
  return (
    <section className="panel">
      <PodTable pods={pods.items} loaded={pods.loaded} place={place} />
    </section>
  )
}

function WorkloadLogs({ place, namespace, selector }: { place: Place; namespace?: string; selector?: string }) {
  const pods = useList(selector ? place : null, PODS, { namespace }, { labelSelector: selector })
  if (pods.error) return <Failure error={pods.error} />
  if (!pods.loaded) return <Bones />
  if (pods.items.length === 0) return <Empty title={t('pods.none')} />
  return <Logs sources={pods.items.map((pod) => ({ place, pod }))} />
}
