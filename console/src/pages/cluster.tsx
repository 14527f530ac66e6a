// One member: how it is, what it has, and the way to what is in it.

import { Link } from 'wouter'
import { useKinds } from '../api/discovery'
import { useList, useOne } from '../api/hooks'
import { BINDINGS, CLUSTERS, NAMESPACES, NODES, PODS, res } from '../api/paths'
import type { Condition, KObject } from '../api/types'
import { t } from '../i18n'
import { bindingHealth } from '../model/binding'
import { clusterHealth, clusterUsage, condition } from '../model/health'
import { listLink, objectLink } from '../model/links'
import { bytes, cores, quantity, shown } from '../model/quantity'
import { resourceOf } from '../model/reference'
import { useHere } from '../place'
import { Age, AsOf, Bones, Empty, Failure, HealthPill, Labels, Meter, Panel, Pill, Tag } from '../ui/parts'
import { ClusterMenu } from './cluster-menu'
import { Usage } from './usage'

/** What a cluster has room for, and its name. */
const ROOM = [['cpu', 'cpu'], ['memory', 'memory'], ['pods', 'pods'], ['ephemeral-storage', 'cluster.disk']] as const

export default function ClusterPage({ name }: { name: string }) {
  const { place } = useHere()
  const { object: cluster, error, loaded, live, at } = useOne(place, CLUSTERS, { name })
  if (!cluster) {
    return <div className="page">{error ? <Failure error={error} /> : loaded ? null : <Bones lines={8} />}</div>
  }
  const health = clusterHealth(cluster)
  return (
    <div className="page">
      <div className="title">
        <h1 className="breaks">{name}</h1>
        <HealthPill health={health} />
        <span className="end">
          <AsOf at={at} live={live} />
          <ClusterMenu cluster={cluster} />
        </span>
      </div>
      {health.tone === 'bad' && health.why && <div className="notice tone-bad">{health.why}</div>}
      <div className="grid two">
        <Facts cluster={cluster} />
        <Panel title={t('cluster.room')}>
          <div className="stack">
            {ROOM.map(([resource, word]) => {
              const usage = clusterUsage(cluster, resource)
              if (usage.total === 0) return null
              return <Meter key={resource} label={t(word)} {...usage} format={(value) => shown(resource, value)} />
            })}
            {clusterUsage(cluster, 'cpu').total === 0 && <span className="muted small">{t('cluster.noroom')}</span>}
          </div>
        </Panel>
      </div>
      {health.tone !== 'bad' && <Usage place={{ instance: place.instance, member: name }} of="nodes" most={{ cpu: clusterUsage(cluster, 'cpu').total, memory: clusterUsage(cluster, 'memory').total }} />}
      <Inside name={name} ready={health.tone !== 'bad'} />
      <div className="grid two">
        <Conditions conditions={cluster.status?.conditions ?? []} />
        <Placed name={name} />
      </div>
    </div>
  )
}

function Facts({ cluster }: { cluster: KObject }) {
  const { spec, status, metadata } = cluster
  return (
    <Panel title={t('cluster.facts')}>
      <dl className="facts">
        <dt>{t('version')}</dt>
        <dd>{status?.kubernetesVersion ?? '—'}</dd>
        <dt>{t('mode')}</dt>
        <dd>{spec?.syncMode}</dd>
        <dt>{t('cluster.endpoint')}</dt>
        <dd className="mono">
          {spec?.apiEndpoint ?? '—'} {spec?.insecureSkipTLSVerification && <Pill tone="bad">{t('cluster.insecure')}</Pill>}
        </dd>
        <dt>{t('cluster.where')}</dt>
        <dd>{[spec?.provider, spec?.region, spec?.zone ?? spec?.zones?.join(', ')].filter(Boolean).join(' · ') || '—'}</dd>
        <dt>{t('nodes')}</dt>
        <dd>{t('clusters.nodes', { ready: status?.nodeSummary?.readyNum ?? 0, total: status?.nodeSummary?.totalNum ?? 0 })}</dd>
        <dt>{t('cluster.joined')}</dt>
        <dd>
          <Age since={metadata.creationTimestamp} />
        </dd>
        <dt>{t('labels')}</dt>
        <dd>
          <Labels labels={metadata.labels} />
        </dd>
        <dt>{t('taints')}</dt>
        <dd className="row wrap gap-4">
          {(spec?.taints ?? []).length === 0 && <span className="faint">—</span>}
          {(spec?.taints ?? []).map((taint: { key: string; value?: string; effect: string }) => (
            <Tag key={taint.key + taint.effect}>{`${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`}</Tag>
          ))}
        </dd>
      </dl>
    </Panel>
  )
}

const BROWSE = [res('apps', 'v1', 'deployments'), PODS, res('', 'v1', 'services'), res('', 'v1', 'configmaps'), NAMESPACES, NODES]

function Inside({ name, ready }: { name: string; ready: boolean }) {
  const { place } = useHere()
  const member = { instance: place.instance, member: name }
  const kinds = useKinds(member)
  const nodes = useList(ready && kinds.value ? member : null, NODES)
  return (
    <Panel
      title={t('cluster.inside')}
      flush
      tools={
        <span className="row wrap gap-12 small">
          {BROWSE.map((resource) => (
            <Link key={resource.plural} href={listLink(member, resource)}>
              {resource.plural}
            </Link>
          ))}
        </span>
      }
    >
      {kinds.error ? (
        <div className="pad">
          <Failure error={kinds.error} again={kinds.again} />
        </div>
      ) : !nodes.loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : nodes.items.length === 0 ? (
        <Empty title={t('cluster.nonodes')} />
      ) : (
        <div className="scroll-x">
          <table className="plain-table">
            <thead>
              <tr>
                <th>{t('node')}</th>
                <th>{t('status')}</th>
                <th>{t('cpu')}</th>
                <th>{t('memory')}</th>
                <th>{t('version')}</th>
                <th>{t('age')}</th>
              </tr>
            </thead>
            <tbody>
              {nodes.items.slice(0, 50).map((node) => (
                <tr key={node.metadata.uid}>
                  <td>
                    <Link href={objectLink(member, NODES, undefined, node.metadata.name)} className="strong">
                      {node.metadata.name}
                    </Link>
                  </td>
                  <td>
                    <NodeWord node={node} />
                  </td>
                  <td className="num">{cores(quantity(node.status?.allocatable?.cpu))}</td>
                  <td className="num">{bytes(quantity(node.status?.allocatable?.memory))}</td>
                  <td>{node.status?.nodeInfo?.kubeletVersion}</td>
                  <td>
                    <Age since={node.metadata.creationTimestamp} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

export function NodeWord({ node }: { node: KObject }) {
  const ready = condition(node, 'Ready')
  if (node.spec?.unschedulable) return <Pill tone="warn">Cordoned</Pill>
  return ready?.status === 'True' ? <Pill tone="ok">Ready</Pill> : <Pill tone="bad" title={ready?.message}>NotReady</Pill>
}

export function Conditions({ conditions }: { conditions: Condition[] }) {
  return (
    <Panel title={t('conditions')} flush>
      {conditions.length === 0 ? (
        <Empty title={t('conditions.none')} />
      ) : (
        <ul className="lines">
          {conditions.map((one) => (
            <li key={one.type}>
              <span className="strong" style={{ minWidth: 150 }}>
                {one.type}
              </span>
              <span className="pill">{one.status}</span>
              <span className="grow small muted breaks" title={one.message}>
                {[one.reason, one.message].filter(Boolean).join(': ')}
              </span>
              <span className="tiny faint">
                <Age since={one.lastTransitionTime} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Placed({ name }: { name: string }) {
  const { place } = useHere()
  const bindings = useList(place, BINDINGS)
  const here = bindings.items.filter((binding) => binding.spec?.clusters?.some((target) => target.name === name))
  return (
    <Panel title={t('cluster.placed')} tools={<span className="count">{here.length}</span>} flush>
      {!bindings.loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : here.length === 0 ? (
        <Empty title={t('cluster.placed.none')} />
      ) : (
        <ul className="lines">
          {here.slice(0, 30).map((binding) => {
            const reference = binding.spec?.resource
            const replicas = binding.spec?.clusters?.find((target) => target.name === name)?.replicas
            return reference && (
              <li key={binding.metadata.uid}>
                <HealthPill health={bindingHealth(binding)} />
                <Link href={objectLink(place, resourceOf(reference), reference.namespace, reference.name, { tab: 'tree' })} className="strong cut grow" title={reference.name}>
                  {reference.namespace ? `${reference.namespace}/` : ''}
                  {reference.name}
                </Link>
                <span className="small muted">{reference.kind}</span>
                {replicas !== undefined && <span className="count">×{replicas}</span>}
              </li>
            )
          })}
        </ul>
      )}
    </Panel>
  )
}
