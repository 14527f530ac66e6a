// One instance: what it has, what is wrong, what happened last.

import { Link } from 'wouter'
import { useList } from '../api/hooks'
import { BINDINGS, CLUSTERS, CLUSTER_POLICIES, EVENTS, OVERRIDES, POLICIES } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { fromMembers } from '../instances'
import { clusterHealth, clusterUsage } from '../model/health'
import { decisionOf } from '../model/decision'
import { bindingHealth } from '../model/binding'
import { clusterLink, instanceLink, objectLink } from '../model/links'
import { bytes, cores } from '../model/quantity'
import { useHere } from '../place'
import { Age, AsOf, Bones, Empty, Failure, HealthPill, Meter, Panel } from '../ui/parts'
import { EventList } from './events'
import { resourceOf } from '../model/reference'

export default function Overview() {
  const { place, fleet, kinds, error } = useHere()
  const clusters = useList(fleet ? place : null, CLUSTERS)
  const bindings = useList(fleet ? place : null, BINDINGS)
  if (error) {
    return (
      <div className="page">
        <Failure error={error} />
      </div>
    )
  }
  return (
    <div className="page">
      <div className="title">
        <h1>{place.instance}</h1>
        <span className="end">
          <AsOf at={clusters.at} live={clusters.live} />
        </span>
      </div>
      {!kinds && <Bones lines={6} />}
      {kinds && fleet && <FleetFigures clusters={clusters.items} bindings={bindings.items} loaded={clusters.loaded} />}
      {kinds && (
        <div className="grid two">
          {fleet && <Troubles clusters={clusters.items} bindings={bindings.items} loaded={clusters.loaded && bindings.loaded} />}
          {fleet && <Decided bindings={bindings.items} loaded={bindings.loaded} />}
          {fleet && <Members clusters={clusters.items} loaded={clusters.loaded} />}
          <RecentEvents wide={!fleet} />
        </div>
      )}
    </div>
  )
}

function FleetFigures({ clusters, bindings, loaded }: { clusters: KObject[]; bindings: KObject[]; loaded: boolean }) {
  const { place } = useHere()
  const policies = useList(place, POLICIES)
  const clusterPolicies = useList(place, CLUSTER_POLICIES)
  const overrides = useList(place, OVERRIDES)
  const all = fromMembers(clusters)
  const well = bindings.filter((binding) => bindingHealth(binding).tone === 'ok').length
  if (!loaded) return <Bones lines={4} />
  return (
    <div className="grid stats">
      <Stat href={instanceLink(place.instance, 'clusters')} label={t('overview.ready')} value={all.readyClusters} of={all.clusters} />
      <Stat href={instanceLink(place.instance, 'propagation')} label={t('overview.spread')} value={well} of={bindings.length} />
      <Stat href={instanceLink(place.instance, 'policies')} label={t('nav.policies')} value={policies.items.length + clusterPolicies.items.length} note={t('overview.overrides', { n: overrides.items.length })} />
      <Stat label={t('nodes')} value={all.nodes} note={t('overview.pods', { n: all.pods })} />
      <div className="panel stat stack">
        <Meter label={t('cpu')} used={all.cpu.used} total={all.cpu.total} format={cores} />
        <Meter label={t('memory')} used={all.memory.used} total={all.memory.total} format={bytes} />
      </div>
    </div>
  )
}

function Stat({ label, value, of, note, href }: { label: string; value: number; of?: number; note?: string; href?: string }) {
  const body = (
    <>
      <span className="small muted">{label}</span>
      <span className={`figure${of !== undefined && value < of ? ' bad' : ''}`}>
        {value.toLocaleString('en')}
        {of !== undefined && <small> / {of.toLocaleString('en')}</small>}
      </span>
      {note && <span className="tiny faint">{note}</span>}
    </>
  )
  return href ? (
    <Link href={href} className="panel stat linked">
      {body}
    </Link>
  ) : (
    <div className="panel stat">{body}</div>
  )
}

function Troubles({ clusters, bindings, loaded }: { clusters: KObject[]; bindings: KObject[]; loaded: boolean }) {
  const { place } = useHere()
  const sick = clusters.map((cluster) => ({ cluster, health: clusterHealth(cluster) })).filter(({ health }) => health.tone !== 'ok')
  const stuck = bindings.map((binding) => ({ binding, health: bindingHealth(binding) })).filter(({ health }) => health.tone === 'bad' || health.tone === 'warn')
  return (
    <Panel title={t('overview.attention')} tools={<span className="count">{sick.length + stuck.length}</span>} flush>
      {!loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : sick.length + stuck.length === 0 ? (
        <Empty title={t('overview.well')}>{t('overview.well.detail')}</Empty>
      ) : (
        <ul className="lines">
          {sick.slice(0, 8).map(({ cluster, health }) => (
            <li key={cluster.metadata.name}>
              <HealthPill health={health} />
              <Link href={clusterLink(place.instance, cluster.metadata.name)} className="strong cut" title={cluster.metadata.name}>
                {cluster.metadata.name}
              </Link>
              <span className="cut muted small grow" title={health.why}>
                {health.why}
              </span>
            </li>
          ))}
          {stuck.slice(0, 10).map(({ binding, health }) => {
            const reference = binding.spec.resource
            return (
              <li key={binding.metadata.uid}>
                <HealthPill health={health} />
                <Link href={objectLink(place, resourceOf(reference), reference.namespace, reference.name, { tab: 'tree' })} className="strong cut" title={reference.name}>
                  {reference.name}
                </Link>
                <span className="cut muted small grow" title={health.why}>
                  {health.why}
                </span>
              </li>
            )
          })}
        </ul>
      )}
    </Panel>
  )
}

/** What the scheduler did last, newest first. */
function Decided({ bindings, loaded }: { bindings: KObject[]; loaded: boolean }) {
  const { place } = useHere()
  const latest = bindings
    .map((binding) => ({ binding, decision: decisionOf(binding) }))
    .filter(({ decision }) => decision?.at)
    .sort((a, b) => (b.decision?.at ?? '').localeCompare(a.decision?.at ?? ''))
    .slice(0, 8)
  return (
    <Panel title={t('overview.decided')} flush>
      {!loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : latest.length === 0 ? (
        <Empty title={t('overview.decided.none')} />
      ) : (
        <ul className="lines">
          {latest.map(({ binding, decision }) => {
            const reference = binding.spec.resource
            const where = (decision?.chosen ?? []).map((one) => (one.replicas ? `${one.cluster} ×${one.replicas}` : one.cluster)).join(', ')
            return (
              <li key={binding.metadata.uid}>
                <Link href={objectLink(place, resourceOf(reference), reference.namespace, reference.name, { tab: 'tree' })} className="strong cut" title={reference.name}>
                  {reference.name}
                </Link>
                <span className="cut muted small grow" title={decision?.error?.message ?? where}>
                  {decision?.error?.message ?? `→ ${where}`}
                </span>
                <span className="tiny faint">
                  <Age since={decision?.at} />
                </span>
              </li>
            )
          })}
        </ul>
      )}
    </Panel>
  )
}

function Members({ clusters, loaded }: { clusters: KObject[]; loaded: boolean }) {
  const { place } = useHere()
  const percent = (cluster: KObject, resource: string) => {
    const { used, total } = clusterUsage(cluster, resource)
    return total > 0 ? used / total : 0
  }
  const fullest = [...clusters].sort((a, b) => percent(b, 'cpu') - percent(a, 'cpu')).slice(0, 8)
  return (
    <Panel title={t('overview.clusters')} tools={<Link className="small" href={instanceLink(place.instance, 'clusters')}>{clusters.length}</Link>} flush>
      {!loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : (
        <ul className="lines">
          {fullest.map((cluster) => (
            <li key={cluster.metadata.name}>
              <HealthPill health={clusterHealth(cluster)} />
              <Link href={clusterLink(place.instance, cluster.metadata.name)} className="strong cut grow" title={cluster.metadata.name}>
                {cluster.metadata.name}
              </Link>
              <span className="mini-meters">
                <Meter label={t('cpu')} {...clusterUsage(cluster, 'cpu')} format={cores} />
                <Meter label={t('memory')} {...clusterUsage(cluster, 'memory')} format={bytes} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function RecentEvents({ wide }: { wide: boolean }) {
  const { place } = useHere()
  const events = useList(place, EVENTS, {}, { limit: 200 })
  return (
    <div style={{ gridColumn: wide ? '1 / -1' : undefined }} className="stack">
      <Panel title={t('overview.events')} flush tools={<AsOf at={events.at} live={events.live} />}>
        <EventList events={events.items} loaded={events.loaded} error={events.error} most={12} place={place} />
      </Panel>
    </div>
  )
}
