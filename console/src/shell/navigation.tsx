// The side bar: the hub's instances, or the pages of one.

import {
  Activity, Box, Boxes, CalendarClock, ChevronsUpDown, Database, FileCog, Gauge, GitFork, Globe2, Home, KeyRound, LayoutGrid, Network, Scale, ScanSearch, Server, SlidersHorizontal,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { useMay } from '../api/access'
import { useKinds } from '../api/discovery'
import { BINDINGS, CLUSTERS, LENDERS, POLICIES, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t, type Word } from '../i18n'
import { useInstances } from '../instances'
import { isBorrower, isFleet, isSimulated, phaseTone } from '../model/instance'
import { instanceLink } from '../model/links'
import { sectionOf } from '../model/sections'
import { Menu } from '../ui/dialog'
import { Cut } from '../ui/parts'

interface Item {
  word: Word
  icon: ReactNode
  page: string
  /** Shown only where this is served and may be listed. */
  needs?: Resource
  /** Shown only in instances that have members, or that borrow nodes. */
  only?: 'fleet' | 'borrower'
}

const size = { size: 16, 'aria-hidden': true } as const

const GROUPS: { word?: Word; items: Item[] }[] = [
  {
    items: [
      { word: 'nav.overview', icon: <Gauge {...size} />, page: '' },
      { word: 'nav.clusters', icon: <Globe2 {...size} />, page: 'clusters', needs: CLUSTERS, only: 'fleet' },
      { word: 'nav.search', icon: <ScanSearch {...size} />, page: 'search', needs: { group: 'clusterpedia.io', version: 'v1beta1', plural: 'resources' } },
    ],
  },
  {
    word: 'nav.group.resources',
    items: [
      { word: 'nav.workloads', icon: <Boxes {...size} />, page: 'r/apps/v1/deployments' },
      { word: 'nav.network', icon: <Network {...size} />, page: 'r/core/v1/services' },
      { word: 'nav.config', icon: <FileCog {...size} />, page: 'r/core/v1/configmaps' },
      { word: 'nav.storage', icon: <Database {...size} />, page: 'r/core/v1/persistentvolumeclaims' },
      { word: 'nav.kinds', icon: <LayoutGrid {...size} />, page: 'kinds' },
    ],
  },
  {
    word: 'nav.group.fleet',
    items: [
      { word: 'nav.propagation', icon: <GitFork {...size} />, page: 'propagation', needs: BINDINGS, only: 'fleet' },
      { word: 'nav.policies', icon: <Scale {...size} />, page: 'policies', needs: POLICIES, only: 'fleet' },
      { word: 'nav.nodes', icon: <CalendarClock {...size} />, page: 'nodes', needs: LENDERS, only: 'borrower' },
    ],
  },
  {
    word: 'nav.group.admin',
    items: [
      { word: 'nav.activity', icon: <Activity {...size} />, page: 'activity' },
      { word: 'nav.access', icon: <KeyRound {...size} />, page: 'access' },
      { word: 'nav.isettings', icon: <SlidersHorizontal {...size} />, page: 'settings', needs: CLUSTERS, only: 'fleet' },
    ],
  },
]

export function Navigation({ instance }: { instance?: string }) {
  const instances = useInstances()
  const [location] = useLocation()
  return (
    <>
      {instance && <Switcher instance={instance} all={instances.items} />}
      <nav aria-label={t('nav')}>
        <Link href="/" aria-current={location === '/' ? 'page' : undefined}>
          <Home {...size} /> {t('nav.home')}
        </Link>
        {instance ? <InstanceItems instance={instance} object={instances.items.find((one) => one.metadata.name === instance)} location={location} /> : <InstanceList all={instances.items} />}
      </nav>
    </>
  )
}

function InstanceList({ all }: { all: KObject[] }) {
  return (
    <>
      {[false, true].map((simulated) => {
        const list = all.filter((one) => isSimulated(one) === simulated)
        if (list.length === 0) return null
        return (
          <div key={String(simulated)} style={{ display: 'contents' }}>
            <div className="group">{t(simulated ? 'nav.group.simulated' : 'nav.group.instances')}</div>
            {list.slice(0, 30).map((one) => (
              <Link key={one.metadata.name} href={instanceLink(one.metadata.name)}>
                <Server {...size} />
                <Cut className="grow">{one.metadata.name}</Cut>
                <span className={`dot tone-${phaseTone(one.status?.phase)}`} title={one.status?.phase} />
              </Link>
            ))}
          </div>
        )
      })}
    </>
  )
}

function InstanceItems({ instance, object, location }: { instance: string; object?: KObject; location: string }) {
  const kinds = useKinds({ instance })
  const section = sectionAt(location)
  const fleet = isFleet(instance, object, kinds.value)
  // An instance one may not look up may be a borrower; better one entry too many than one too few.
  const borrower = object ? isBorrower(object) : instance !== 'root'
  const served = (item: Item) => {
    if ((item.only === 'fleet' && !fleet) || (item.only === 'borrower' && !borrower)) return false
    return !item.needs || kinds.value?.some((kind) => kind.group === item.needs?.group && kind.plural === item.needs.plural)
  }
  return GROUPS.map((group) => {
    const items = group.items.filter(served)
    if (items.length === 0) return null
    return (
      <div key={group.word ?? ''} style={{ display: 'contents' }}>
        {group.word && <div className="group">{t(group.word)}</div>}
        {items.map((item) => (
          <NavItem key={item.page} item={item} instance={instance} current={isCurrent(item, location, instance, section)} />
        ))}
      </div>
    )
  })
}

function NavItem({ item, instance, current }: { item: Item; instance: string; current: boolean }) {
  const act = item.needs && item.needs.group !== 'clusterpedia.io' ? { verb: 'list', group: item.needs.group, resource: item.needs.plural } : null
  const allowed = useMay({ instance }, act)
  if (act && allowed === false) return null
  return (
    <Link href={instanceLink(instance, item.page)} aria-current={current ? 'page' : undefined}>
      {item.icon} {t(item.word)}
    </Link>
  )
}

function sectionAt(location: string): string | undefined {
  const match = /^\/i\/[^/]+\/[ro]\/([^/]+)\/([^/]+)\/([^/?]+)/.exec(location)
  if (!match) return undefined
  const group = match[1] === 'core' ? '' : (match[1] ?? '')
  if (/^(policy|work)\.karmada\.io$/.test(group)) return group.startsWith('policy') ? 'policies' : 'propagation'
  if (group === 'cloud.tencent.com') return 'nodes'
  return sectionOf({ group, version: match[2] ?? '', plural: match[3] ?? '' }) ?? 'kinds'
}

function isCurrent(item: Item, location: string, instance: string, section: string | undefined): boolean {
  if (section) return item.word === `nav.${section}`
  const here = location.slice(`/i/${encodeURIComponent(instance)}`.length).replace(/^\//, '')
  return item.page === '' ? here === '' : here === item.page || here.startsWith(`${item.page}/`)
}

function Switcher({ instance, all }: { instance: string; all: KObject[] }) {
  const current = all.find((one) => one.metadata.name === instance)
  return (
    <Menu
      className="switcher"
      look="plain"
      align="left"
      label={`${t('switch')}: ${current?.spec?.alias || instance}`}
      button={
        <>
          <span className={`dot tone-${instance === 'root' ? 'ok' : phaseTone(current?.status?.phase)}`} />
          <span className="grow cut strong" title={instance}>
            {current?.spec?.alias || instance}
          </span>
          <ChevronsUpDown size={14} aria-hidden="true" className="faint" />
        </>
      }
    >
      {(all.length ? all : [{ metadata: { name: instance } } as KObject]).map((one) => (
        <Link key={one.metadata.name} href={instanceLink(one.metadata.name)} className="item" role="menuitem">
          <span className={`dot tone-${phaseTone(one.status?.phase)}`} />
          <Cut className="grow">{one.spec?.alias || one.metadata.name}</Cut>
          {one.metadata.name === instance && <Box size={13} aria-hidden="true" />}
        </Link>
      ))}
    </Menu>
  )
}
