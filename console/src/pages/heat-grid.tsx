// Many clusters in one look: a square each, grouped, coloured by what is asked for.

import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { clusterHealth, clusterUsage, type Tone } from '../model/health'
import { clusterLink } from '../model/links'
import { Segments } from '../ui/parts'

type Colour = 'health' | 'cpu' | 'memory' | 'pods'
type Group = 'region' | 'provider' | 'zone' | 'none'

export function HeatGrid({ clusters, instance }: { clusters: KObject[]; instance: string }) {
  const [colour, setColour] = useState<Colour>('health')
  const [group, setGroup] = useState<Group>('region')
  const groups = useMemo(() => groupsOf(clusters, group), [clusters, group])
  return (
    <div className="stack">
      <div className="bar small">
        <span className="muted">{t('grid.colour')}</span>
        <Segments<Colour> label={t('grid.colour')} value={colour} onChange={setColour} options={[{ value: 'health', text: t('status') }, { value: 'cpu', text: t('cpu') }, { value: 'memory', text: t('memory') }, { value: 'pods', text: t('pods') }]} />
        <span className="muted">{t('grid.group')}</span>
        <Segments<Group> label={t('grid.group')} value={group} onChange={setGroup} options={[{ value: 'region', text: t('region') }, { value: 'provider', text: t('provider') }, { value: 'zone', text: t('zone') }, { value: 'none', text: t('none') }]} />
        <span className="end">
          <Legend colour={colour} />
        </span>
      </div>
      <div className="heat-groups">
        {groups.map(([name, members]) => (
          <section key={name} className="panel heat-group">
            <header>
              <h3 className="cut" title={name}>
                {name || t('grid.unset')}
              </h3>
              <span className="count">{members.length}</span>
              <Sick members={members} />
            </header>
            <ul className="heat">
              {members.map((cluster) => (
                <li key={cluster.metadata.name}>
                  <Square cluster={cluster} colour={colour} instance={instance} />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  )
}

function Sick({ members }: { members: KObject[] }) {
  const bad = members.filter((member) => clusterHealth(member).tone === 'bad').length
  return bad > 0 ? <span className="pill tone-bad end">{t('grid.sick', { n: bad })}</span> : null
}

function Square({ cluster, colour, instance }: { cluster: KObject; colour: Colour; instance: string }) {
  const health = clusterHealth(cluster)
  const { name } = cluster.metadata
  const part = colour === 'health' ? undefined : share(cluster, colour)
  const level = part === undefined ? toneClass(health.tone) : part < 0 ? 'level-none' : `level-${Math.min(4, Math.floor(part * 5))}`
  const text = `${name}: ${health.word}${part !== undefined && part >= 0 ? `, ${Math.round(part * 100)}%` : ''}${health.why ? ` (${health.why})` : ''}`
  return (
    <Link href={clusterLink(instance, name)} className={`square ${level}`} title={text} aria-label={text}>
      {health.tone === 'bad' ? '!' : health.tone === 'warn' ? '–' : ''}
    </Link>
  )
}

function toneClass(tone: Tone): string {
  return `tone-${tone}`
}

function share(cluster: KObject, resource: string): number {
  const { used, total } = clusterUsage(cluster, resource)
  return total > 0 ? Math.min(1, used / total) : -1
}

function groupsOf(clusters: KObject[], group: Group): [string, KObject[]][] {
  const groups = new Map<string, KObject[]>()
  for (const cluster of clusters) {
    const name = group === 'none' ? t('grid.everything') : (cluster.spec?.[group] ?? (group === 'zone' ? cluster.spec?.zones?.[0] : undefined) ?? '')
    const members = groups.get(name)
    if (members) members.push(cluster)
    else groups.set(name, [cluster])
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b))
}

function Legend({ colour }: { colour: Colour }) {
  const steps: [string, string][] =
    colour === 'health'
      ? [['tone-ok', 'Ready'], ['tone-warn', 'Cordoned'], ['tone-bad', 'NotReady'], ['tone-idle', 'Unknown']]
      : [['level-0', '<20%'], ['level-1', '<40%'], ['level-2', '<60%'], ['level-3', '<80%'], ['level-4', '≥80%']]
  return (
    <span className="row wrap gap-12 tiny muted">
      {steps.map(([look, text]) => (
        <span key={look} className="row gap-4">
          <span className={`square legend ${look}`} aria-hidden="true" /> {text}
        </span>
      ))}
    </span>
  )
}
