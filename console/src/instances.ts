// Which control planes the hub has, as far as the user may know.

import { useMemo } from 'react'
import { call } from './api/http'
import { type Fetched, useFetched, useList } from './api/hooks'
import { base, CLUSTERS, INSTANCES } from './api/paths'
import type { KObject } from './api/types'
import { clusterHealth, clusterUsage } from './model/health'
import { quantity } from './model/quantity'

export interface Instances {
  items: KObject[]
  loaded: boolean
  live: boolean
  at: number
  /** The server keeps no list: these were found by asking for well-known names. */
  guessed: boolean
  error?: Fetched<unknown>['error']
}

const ROOT = { instance: 'root' }
const WELL_KNOWN = ['root', 'fleet', 'compute']

export function useInstances(): Instances {
  const list = useList(ROOT, INSTANCES)
  const refused = list.error && list.items.length === 0 ? list.error : undefined
  const guess = useFetched(refused && refused.code !== 0 ? 'instances' : null, probe)
  return useMemo(() => {
    if (!refused) return { items: list.items, loaded: list.loaded, live: list.live, at: list.at, guessed: false }
    return { items: guess.value ?? [], loaded: !guess.loading, live: false, at: guess.value ? Date.now() : 0, guessed: true, error: refused }
  }, [list, refused, guess.value, guess.loading])
}

async function probe(): Promise<KObject[]> {
  const found = await Promise.all(
    WELL_KNOWN.map((name) =>
      call(`${base({ instance: name })}/version`).then(
        (version) => ({ kind: 'Instance', metadata: { name }, spec: {}, status: { phase: 'Ready', version: version.gitVersion } }),
        () => null,
      ),
    ),
  )
  return found.filter((one) => one !== null)
}

export interface Statistics {
  clusters: number
  readyClusters: number
  nodes: number
  pods: number
  cpu: { used: number; total: number }
  memory: { used: number; total: number }
  at: number
  live: boolean
}

/** What is in an instance: as it says itself, or counted from its members. */
export function useStatistics(instance: KObject): Statistics | undefined {
  const told = instance.status?.statistics
  const members = useList(told ? null : { instance: instance.metadata.name }, CLUSTERS)
  return useMemo(() => {
    if (told) return fromStatus(told)
    if (!members.loaded || members.error) return undefined
    return { ...fromMembers(members.items), at: members.at, live: members.live }
  }, [told, members])
}

function fromStatus(told: Record<string, unknown>): Statistics {
  const number = (name: string) => Number(told[name] ?? 0)
  return {
    clusters: number('clusters'), readyClusters: number('readyClusters'), nodes: number('nodes'), pods: number('pods'),
    cpu: { used: quantity(told.cpuAllocated), total: quantity(told.cpuCapacity) },
    memory: { used: quantity(told.memoryAllocated), total: quantity(told.memoryCapacity) },
    at: 0, live: true,
  }
}

export function fromMembers(members: KObject[]): Omit<Statistics, 'at' | 'live'> {
  const sum = (of: (member: KObject) => number) => members.reduce((total, member) => total + of(member), 0)
  return {
    clusters: members.length,
    readyClusters: members.filter((member) => ['ok', 'warn'].includes(clusterHealth(member).tone)).length,
    nodes: sum((member) => member.status?.nodeSummary?.totalNum ?? 0),
    pods: sum((member) => clusterUsage(member, 'pods').used),
    cpu: { used: sum((member) => clusterUsage(member, 'cpu').used), total: sum((member) => clusterUsage(member, 'cpu').total) },
    memory: { used: sum((member) => clusterUsage(member, 'memory').used), total: sum((member) => clusterUsage(member, 'memory').total) },
  }
}
