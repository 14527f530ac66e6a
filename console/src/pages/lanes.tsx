// One lane for each chosen cluster: work, object and pods there.

import { Box, ChevronDown, ChevronRight, Globe2, ScrollText } from 'lucide-react'
import { memo, useEffect, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useList, useOne } from '../api/hooks'
import { EVENTS, PODS, type Place, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { podHealth } from '../model/health'
import { clusterLink, objectLink } from '../model/links'
import { type Lane, laneHealth, podSelector, readyOf, type Tree, workHealth } from '../model/tree'
import { useHere } from '../place'
import { Button, Cut, Failure, HealthPill } from '../ui/parts'
import type { DrawerTarget } from './drawer'
import { EventList } from './events'
import { PodTable } from './pods'
import { WORKS } from '../api/paths'

const FEW = 6
const MANY = 60
const ORDER = { bad: 0, warn: 1, busy: 2, idle: 3, ok: 4 }

interface Props {
  tree: Tree
  resource: Resource
  pods: ReadonlyMap<string, KObject[]>
  onPods: (cluster: string, pods: KObject[]) => void
  onOpen: (target: DrawerTarget) => void
}

export function Lanes({ tree, resource, pods, onPods, onOpen }: Props) {
  const [most, setMost] = useState(MANY)
  const sorted = useMemo(
    () => [...tree.lanes].sort((a, b) => ORDER[laneHealth(a, pods.get(a.cluster)).tone] - ORDER[laneHealth(b, pods.get(b.cluster)).tone] || a.cluster.localeCompare(b.cluster, 'en', { numeric: true })),
    [tree.lanes, pods],
  )
  const watchAll = tree.lanes.length <= FEW
  return (
    <section className="lanes" aria-label={t('tree.lanes')}>
      <div className="lane-head" aria-hidden="true">
        <span>{t('cluster')}</span>
        <span>{t('tree.work')}</span>
        <span>{t('tree.object')}</span>
        <span>{t('pods')}</span>
      </div>
      <ul>
        {sorted.slice(0, most).map((lane) => (
          <LaneRow key={lane.cluster} lane={lane} template={tree.template} resource={resource} watch={watchAll} known={pods.get(lane.cluster)} onPods={onPods} onOpen={onOpen} />
        ))}
      </ul>
      {sorted.length > most && (
        <Button look="small" onClick={() => setMost(most + 200)}>
          {t('more', { n: sorted.length - most })}
        </Button>
      )}
    </section>
  )
}

interface RowProps {
  lane: Lane
  template?: KObject
  resource: Resource
  /** Look into the member right away, not only when opened. */
  watch: boolean
  known?: KObject[]
  onPods: (cluster: string, pods: KObject[]) => void
  onOpen: (target: DrawerTarget) => void
}

const LaneRow = memo(function LaneRow({ lane, template, resource, watch, known, onPods, onOpen }: RowProps) {
  const { place } = useHere()
  const [open, setOpen] = useState(false)
  const member: Place = { instance: place.instance, member: lane.cluster }
  const health = laneHealth(lane, known)
  const reachable = lane.member !== undefined && !['NotReady', 'Unknown', 'Gone'].includes(health.word)
  const look = (watch || open) && reachable && template
  const { name, namespace } = template?.metadata ?? { name: '' }
  const selector = podSelector(template)
  const pods = useList(look && selector ? member : null, PODS, { namespace }, { labelSelector: selector })
  useEffect(() => {
    if (pods.loaded) onPods(lane.cluster, pods.items)
  }, [pods.loaded, pods.items, lane.cluster, onPods])
  const work = workHealth(lane.work)
  return (
    <li className={`lane tone-${health.tone}`}>
      <div className="lane-cells">
        <div className="node">
          <span className="row">
            <button type="button" className="fold" aria-expanded={open} aria-label={t('tree.unfold', { cluster: lane.cluster })} onClick={() => setOpen(!open)}>
              {open ? <ChevronDown size={14} aria-hidden="true" /> : <ChevronRight size={14} aria-hidden="true" />}
            </button>
            <Globe2 size={14} aria-hidden="true" className="faint" />
            <Link href={clusterLink(place.instance, lane.cluster)} className="strong cut" title={lane.cluster}>
              {lane.cluster}
            </Link>
          </span>
          <span className="tiny muted">{reasonOf(lane)}</span>
        </div>
        {lane.work ? (
          <button type="button" className="node" onClick={() => lane.work && onOpen({ place, resource: WORKS, namespace: lane.work.metadata.namespace, name: lane.work.metadata.name, title: 'Work' })}>
            <HealthPill health={work} plain />
            <Cut className="tiny muted">{work.why ?? lane.work.metadata.name}</Cut>
          </button>
        ) : (
          <div className="node missing">
            <HealthPill health={work} plain />
          </div>
        )}
        <ObjectNode lane={lane} health={health} onOpen={() => reachable && onOpen({ place: member, resource, namespace, name, title: `${template?.kind} · ${lane.cluster}`, compare: lane.work?.spec?.workload?.manifests?.[0] as KObject | undefined })} />
        <PodDots pods={known ?? []} loaded={known !== undefined} expected={selector ? lane.replicas : 0} member={member} />
      </div>
      {open && (
        <div className="lane-inside">
          {!reachable ? (
            <p className="small muted">{t('tree.unreachable')}</p>
          ) : pods.error ? (
            <Failure error={pods.error} />
          ) : (
            <Inside lane={lane} member={member} resource={resource} template={template} pods={pods.items} podsLoaded={pods.loaded || !selector} withPods={selector !== undefined} />
          )}
        </div>
      )}
    </li>
  )
})

function reasonOf(lane: Lane): string {
  if (lane.evicting) return lane.evicting
  if (lane.replicas === 0) return t('tree.reason.plain')
  return lane.room === undefined ? t('tree.reason', { n: lane.replicas }) : t('tree.reason.room', { n: lane.replicas, room: lane.room })
}

function ObjectNode({ lane, health, onOpen }: { lane: Lane; health: ReturnType<typeof laneHealth>; onOpen: () => void }) {
  const ready = readyOf(lane)
  return (
    <button type="button" className="node" onClick={onOpen}>
      <HealthPill health={health} plain />
      <Cut className="tiny muted">{health.why && health.tone !== 'ok' ? health.why : ready !== undefined && lane.replicas > 0 ? t('tree.replicas', { ready, wanted: lane.replicas }) : lane.told?.applied ? t('tree.applied') : '—'}</Cut>
    </button>
  )
}

const MOST_DOTS = 24

function PodDots({ pods, loaded, expected, member }: { pods: KObject[]; loaded: boolean; expected: number; member: Place }) {
  if (!loaded) return <div className="node bare tiny faint">{expected > 0 ? t('tree.pods.unseen', { n: expected }) : '—'}</div>
  return (
    <div className="node bare">
      <ul className="dots">
        {pods.slice(0, MOST_DOTS).map((pod) => {
          const health = podHealth(pod)
          const text = `${pod.metadata.name}: ${health.word}${health.why ? ` (${health.why})` : ''}`
          return (
            <li key={pod.metadata.uid}>
              <Link className={`pod-dot tone-${health.tone}`} href={objectLink(member, PODS, pod.metadata.namespace, pod.metadata.name)} title={text} aria-label={text}>
                <Box size={12} aria-hidden="true" />
              </Link>
            </li>
          )
        })}
        {pods.length > MOST_DOTS && <li className="count">+{pods.length - MOST_DOTS}</li>}
        {pods.length === 0 && <li className="tiny faint">{t('pods.none')}</li>}
      </ul>
    </div>
  )
}

interface InsideProps {
  lane: Lane
  member: Place
  resource: Resource
  template?: KObject
  pods: KObject[]
  podsLoaded: boolean
  withPods: boolean
}

function Inside({ member, resource, template, pods, podsLoaded, withPods }: InsideProps) {
  const { name, namespace } = template?.metadata ?? { name: '' }
  const object = useOne(member, resource, { namespace, name })
  const events = useList(member, EVENTS, { namespace })
  const names = new Set([name, ...pods.map((pod) => pod.metadata.name)])
  const mine = events.items.filter((event) => names.has(event.involvedObject?.name ?? '') || event.involvedObject?.name?.startsWith(`${name}-`))
  return (
    <div className="grid lane-grid">
      {withPods && (
        <div className="panel">
          <PodTable pods={pods} loaded={podsLoaded} place={member} />
        </div>
      )}
      <div className="panel">
        <header>
          <h3 className="row">
            <ScrollText size={14} aria-hidden="true" /> {t('tab.events')}
          </h3>
          <span className="end small">{object.object && <Link href={objectLink(member, resource, namespace, name, { tab: withPods ? 'logs' : 'yaml' })}>{withPods ? t('tree.logs') : t('yaml')}</Link>}</span>
        </header>
        <EventList events={mine} loaded={events.loaded} error={events.error} most={8} place={member} />
      </div>
    </div>
  )
}
