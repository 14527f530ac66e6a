// Nodes lent by other clusters: by whom, how much, when.

import { CalendarClock, Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useMay } from '../api/access'
import { useList } from '../api/hooks'
import { LEASES, LENDERS, NODES, PODS, type Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { useInstances } from '../instances'
import { condition } from '../model/health'
import { listLink, objectLink } from '../model/links'
import { bytes, cores, quantity } from '../model/quantity'
import { useHere } from '../place'
import { AsOf, Bones, Button, Cut, Empty, Failure, Meter, Panel, Pill } from '../ui/parts'
import { NodeWord } from './cluster'
import { LeaseCalendar } from './lease-calendar'
import { LendDialog } from './lend'

const BINDING = 'kubeocean.io/cluster-binding'

export default function VirtualNodes() {
  const { place } = useHere()
  const lenders = useList(place, LENDERS)
  const nodes = useList(place, NODES)
  const pods = useList(place, PODS)
  const leased = useMemo(() => nodes.items.filter((node) => node.metadata.labels?.['kubeocean.io/managed-by'] === 'kubeocean'), [nodes.items])
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.nodes')}</h1>
        {nodes.loaded && <span className="count">{leased.length}</span>}
        <span className="end">
          <AsOf at={nodes.at} live={nodes.live} />
          <LendButton lenders={lenders.items} />
        </span>
      </div>
      {lenders.error && <Failure error={lenders.error} />}
      {!lenders.loaded && <Bones lines={5} />}
      {lenders.loaded && lenders.items.length === 0 && !lenders.error && (
        <div className="panel">
          <Empty icon={<CalendarClock size={34} aria-hidden="true" />} title={t('lease.none')} action={<Link className="button" href={listLink(place, LENDERS)}>{t('lease.bindings')}</Link>}>
            {t('lease.none.detail')}
          </Empty>
        </div>
      )}
      <div className="grid cards">
        {lenders.items.map((lender) => (
          <LenderCard key={lender.metadata.name} lender={lender} nodes={leased.filter((node) => node.metadata.labels?.[BINDING] === lender.metadata.name)} pods={pods.items} />
        ))}
      </div>
      {leased.length > 0 && <NodeTable nodes={leased} pods={pods.items} place={place} />}
      <Leases lenders={lenders.items} />
    </div>
  )
}

/** Offered for lenders that are instances of this hub; others are told to lend in their own cluster. */
function LendButton({ lenders }: { lenders: KObject[] }) {
  const [open, setOpen] = useState(false)
  const instances = useInstances()
  const here = instances.items.map((one) => one.metadata.name)
  const names = lenders.map((lender): string => lender.spec?.clusterID ?? '').filter((name) => here.includes(name))
  const may = useMay(names[0] ? { instance: names[0] } : null, { verb: 'create', group: LEASES.group, resource: LEASES.plural })
  if (!may) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        <Plus size={15} aria-hidden="true" /> {t('lend.new')}
      </Button>
      {open && <LendDialog lenders={names} onClose={() => setOpen(false)} />}
    </>
  )
}

function requested(pods: KObject[], node: string, resource: string): number {
  let sum = 0
  for (const pod of pods) {
    if (pod.spec?.nodeName !== node || ['Succeeded', 'Failed'].includes(pod.status?.phase)) continue
    for (const container of pod.spec?.containers ?? []) sum += quantity(container.resources?.requests?.[resource])
  }
  return sum
}

function LenderCard({ lender, nodes, pods }: { lender: KObject; nodes: KObject[]; pods: KObject[] }) {
  const { place } = useHere()
  const { name } = lender.metadata
  const phase: string = lender.status?.phase ?? 'Pending'
  const total = (resource: string) => nodes.reduce((sum, node) => sum + quantity(node.status?.allocatable?.[resource]), 0)
  const used = (resource: string) => nodes.reduce((sum, node) => sum + requested(pods, node.metadata.name, resource), 0)
  const trouble = condition(lender, 'Ready')
  return (
    <article className="panel instance-card">
      <header>
        <h2 className="grow cut">
          <Link className="cover" href={objectLink(place, LENDERS, undefined, name)} title={name}>
            {name}
          </Link>
        </h2>
        <Pill tone={phase === 'Ready' ? 'ok' : phase === 'Failed' ? 'bad' : 'busy'}>{phase}</Pill>
      </header>
      <div className="body stack">
        <div className="dotted small muted">
          <Cut>{t('lease.namespace', { name: lender.spec?.mountNamespace ?? '—' })}</Cut>
          <span>{t('lease.nodes', { n: nodes.length })}</span>
        </div>
        {trouble?.status === 'False' && <p className="small tone-bad toned breaks">{[trouble.reason, trouble.message].filter(Boolean).join(': ')}</p>}
        <Meter label={t('cpu')} used={used('cpu')} total={total('cpu')} format={cores} />
        <Meter label={t('memory')} used={used('memory')} total={total('memory')} format={bytes} />
      </div>
    </article>
  )
}

function NodeTable({ nodes, pods, place }: { nodes: KObject[]; pods: KObject[]; place: Place }) {
  return (
    <Panel title={t('lease.leased')} flush>
      <div className="scroll-x">
        <table className="plain-table">
          <thead>
            <tr>
              <th>{t('node')}</th>
              <th>{t('status')}</th>
              <th>{t('lease.from')}</th>
              <th>{t('lease.policy')}</th>
              <th>{t('cpu')}</th>
              <th>{t('memory')}</th>
              <th>{t('pods')}</th>
            </tr>
          </thead>
          <tbody>
            {nodes.slice(0, 200).map((node) => {
              const { name, labels = {}, annotations = {} } = node.metadata
              return (
                <tr key={name}>
                  <td>
                    <Link className="strong breaks" href={objectLink(place, NODES, undefined, name)}>
                      {name}
                    </Link>
                  </td>
                  <td>
                    <NodeWord node={node} />
                  </td>
                  <td className="breaks">
                    {labels[BINDING]} / {labels['kubeocean.io/physical-node-name']}
                  </td>
                  <td className="breaks muted">{annotations['kubeocean.io/policy-details']?.replaceAll('=/', ' ').replaceAll('=', ' ').replaceAll(',', ', ').replace('(', ' (') ?? annotations['kubeocean.io/policies-applied'] ?? '—'}</td>
                  <td className="num">
                    {cores(requested(pods, name, 'cpu'))} / {cores(quantity(node.status?.allocatable?.cpu))}
                  </td>
                  <td className="num">
                    {bytes(requested(pods, name, 'memory'))} / {bytes(quantity(node.status?.allocatable?.memory))}
                  </td>
                  <td className="num">{pods.filter((pod) => pod.spec?.nodeName === name).length}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </Panel>
  )
}

/** Lease policies live with the lender: here when it is in this hub, else only in its own cluster. */
function Leases({ lenders }: { lenders: KObject[] }) {
  const { place } = useHere()
  const instances = useInstances()
  const here = instances.items.map((one) => one.metadata.name)
  const places = [place.instance, ...lenders.map((lender) => lender.spec?.clusterID).filter((name) => here.includes(name) && name !== place.instance)]
  return (
    <>
      {[...new Set(places)].map((instance) => (
        <LeasesAt key={instance} place={{ instance }} />
      ))}
    </>
  )
}

function LeasesAt({ place }: { place: Place }) {
  const policies = useList(place, LEASES)
  if (policies.items.length === 0) return null
  return (
    <Panel title={t('lease.calendar', { name: place.instance })} tools={<AsOf at={policies.at} live={policies.live} />}>
      <div className="stack loose">
        {policies.items.map((policy) => (
          <LeaseCalendar key={policy.metadata.name} policy={policy} place={place} />
        ))}
      </div>
    </Panel>
  )
}
