// All instances of the hub at a glance.

import { ArrowRight, Plus, Server } from 'lucide-react'
import { useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useMay } from '../api/access'
import { call } from '../api/http'
import { useFetched, useList } from '../api/hooks'
import { BINDINGS, INSTANCES, NODES, path } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { type Statistics, useInstances, useStatistics } from '../instances'
import { condition } from '../model/health'
import { isBorrower, isSimulated, phaseTone } from '../model/instance'
import { instanceLink } from '../model/links'
import { bytes, cores, quantity } from '../model/quantity'
import { Age, AsOf, Bone, Bones, Button, Cut, Empty, Field, Meter, Notice, Pill } from '../ui/parts'
import { CreateInstance } from './create-instance'

export function Home() {
  const instances = useInstances()
  const [creating, setCreating] = useState(false)
  const planes = instances.items.filter((one) => !isSimulated(one))
  const simulated = instances.items.filter(isSimulated)
  const mayCreate = useMay(instances.guessed ? null : { instance: 'root' }, { verb: 'create', group: INSTANCES.group, resource: INSTANCES.plural })
  return (
    <div className="page">
      <div className="title">
        <h1>{t('home.title')}</h1>
        {instances.loaded && <span className="count">{instances.items.length}</span>}
        <span className="end">
          <AsOf at={instances.at} live={instances.live} />
          {mayCreate && (
            <Button look="primary" onClick={() => setCreating(true)}>
              <Plus size={15} aria-hidden="true" /> {t('home.create')}
            </Button>
          )}
        </span>
      </div>
      {instances.guessed && instances.loaded && (
        <Notice tone="idle" title={t('home.guessed')}>
          {t('home.guessed.detail')}
        </Notice>
      )}
      {!instances.loaded ? (
        <div className="grid cards">
          {[1, 2, 3].map((card) => (
            <div className="panel stat" key={card}>
              <Bones lines={5} />
            </div>
          ))}
        </div>
      ) : (
        <>
          <div className="grid cards">
            {planes.map((one) => (
              <InstanceCard key={one.metadata.name} instance={one} />
            ))}
          </div>
          {simulated.length > 0 && <h2>{t('home.simulated')}</h2>}
          <div className="grid cards small-cards">
            {simulated.map((one) => (
              <SimulatedCard key={one.metadata.name} instance={one} />
            ))}
          </div>
        </>
      )}
      {instances.loaded && instances.items.length === 0 && (
        <Empty icon={<Server size={34} aria-hidden="true" />} title={t('home.none')}>
          {t('home.none.detail')}
        </Empty>
      )}
      {instances.guessed && <OpenByName />}
      {creating && <CreateInstance onClose={() => setCreating(false)} />}
    </div>
  )
}

function InstanceCard({ instance }: { instance: KObject }) {
  const { name } = instance.metadata
  const statistics = useStatistics(instance)
  const phase: string = instance.status?.phase ?? 'Unknown'
  const trouble = condition(instance, 'Ready')
  return (
    <article className="panel instance-card">
      <header>
        <Server size={17} aria-hidden="true" className="faint" />
        <h2 className="grow cut">
          <Link href={instanceLink(name)} className="cover" title={name}>
            {instance.spec?.alias || name}
          </Link>
        </h2>
        <Pill tone={phaseTone(phase)}>{phase}</Pill>
      </header>
      <div className="body stack">
        <div className="dotted small muted">
          <Cut className="mono">{name}</Cut>
          {instance.status?.version && <span>{instance.status.version}</span>}
          {instance.metadata.creationTimestamp && <Age since={instance.metadata.creationTimestamp} />}
        </div>
        {trouble?.status === 'False' && <Notice tone="bad" title={trouble.reason ?? phase}>{trouble.message}</Notice>}
        <CardFigures name={name} statistics={statistics} />
      </div>
    </article>
  )
}

/** A simulated cluster has nodes of its own instead of members. */
function SimulatedCard({ instance }: { instance: KObject }) {
  const { name, annotations } = instance.metadata
  const phase: string = instance.status?.phase ?? 'Unknown'
  const place = { instance: name }
  const nodes = useList(place, NODES)
  const ready = nodes.items.filter((node) => condition(node, 'Ready')?.status === 'True').length
  const total = (resource: string) => nodes.items.reduce((sum, node) => sum + quantity(node.status?.allocatable?.[resource]), 0)
  return (
    <article className="panel instance-card">
      <header>
        <h2 className="grow cut">
          <Link href={instanceLink(name)} className="cover" title={name}>
            {instance.spec?.alias || name}
          </Link>
        </h2>
        <Pill tone={phaseTone(phase)}>{phase}</Pill>
      </header>
      <div className="body small muted dotted">
        {nodes.loaded ? <span>{t('home.nodes', { ready, total: nodes.items.length })}</span> : <Bone width={40} />}
        {nodes.loaded && <span>{t('home.cores', { n: cores(total('cpu')) })}</span>}
        {nodes.loaded && <span>{bytes(total('memory'))}</span>}
        {annotations?.['sim.atoll.io/region'] && <span>{annotations['sim.atoll.io/region']}</span>}
        {isBorrower(instance) && <span className="tone-busy toned">{t('home.borrower')}</span>}
      </div>
    </article>
  )
}

function CardFigures({ name, statistics }: { name: string; statistics?: Statistics }) {
  const workloads = useWorkloads(statistics?.clusters ? name : null, statistics?.pods ?? 0)
  if (!statistics) return <p className="small muted">{t('home.nostats')}</p>
  if (statistics.clusters === 0) return <p className="small muted">{t('home.nomembers')}</p>
  return (
    <>
      <dl className="figures-row">
        <Figure label={t('clusters')} value={`${statistics.readyClusters}/${statistics.clusters}`} bad={statistics.readyClusters < statistics.clusters} />
        <Figure label={t('nodes')} value={statistics.nodes.toLocaleString('en')} />
        {workloads !== undefined && <Figure label={t('nav.workloads')} value={workloads.toLocaleString('en')} />}
        <Figure label={t('pods')} value={statistics.pods.toLocaleString('en')} />
      </dl>
      <Meter label={t('cpu')} used={statistics.cpu.used} total={statistics.cpu.total} format={cores} />
      <Meter label={t('memory')} used={statistics.memory.used} total={statistics.memory.total} format={bytes} />
    </>
  )
}

/** How many templates were placed; asked again when the number of pods changes. */
function useWorkloads(name: string | null, pods: number): number | undefined {
  const counted = useFetched(name && `${name} ${pods}`, (signal) => call<{ items: unknown[]; metadata?: { remainingItemCount?: number } }>(path({ instance: name ?? '' }, BINDINGS, {}, { limit: 1 }), { signal }))
  const last = useRef<number>(undefined)
  if (counted.value) last.current = counted.value.items.length + (counted.value.metadata?.remainingItemCount ?? 0)
  return last.current
}

function Figure({ label, value, bad }: { label: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd className={bad ? 'bad' : undefined}>{value}</dd>
    </div>
  )
}

/** For those who may not list instances but were given one. */
function OpenByName() {
  const [, go] = useLocation()
  const [name, setName] = useState('')
  return (
    <form
      className="row end-align"
      onSubmit={(event) => {
        event.preventDefault()
        if (name) go(instanceLink(name))
      }}
    >
      <Field label={t('home.open')}>{(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value.trim())} />}</Field>
      <Button type="submit" disabled={!name}>
        <ArrowRight size={15} aria-hidden="true" /> {t('open')}
      </Button>
    </form>
  )
}
