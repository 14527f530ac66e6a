// Which kinds a place serves.

import { call } from './http'
import { useFetched } from './hooks'
import { base, type Place, type Resource } from './paths'
import type { Loose } from './types'

export interface Kind extends Resource {
  kind: string
  namespaced: boolean
  verbs: string[]
  shortNames: string[]
  categories: string[]
  subresources: string[]
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
const KEEP_MS = 120_000
const known = new Map<string, { at: number; kinds: Promise<Kind[]> }>()

export function kindsOf(place: Place): Promise<Kind[]> {
  const key = base(place)
  const before = known.get(key)
  if (before && Date.now() - before.at < KEEP_MS) return before.kinds
  const kinds = Promise.all([discover(place, '/api'), discover(place, '/apis')]).then((parts) => parts.flat())
  known.set(key, { at: Date.now(), kinds })
  kinds.catch(() => known.delete(key))
  return kinds
}

export function useKinds(place: Place | null) {
  return useFetched<Kind[]>(place ? base(place) || '/' : null, () => kindsOf(place as Place))
}

export function forgetKinds(): void {
  known.clear()
}

async function discover(place: Place, root: '/api' | '/apis'): Promise<Kind[]> {
  const answer = await call(base(place) + root, { accept: AGGREGATED })
  if (Array.isArray(answer.items)) return answer.items.flatMap(fromGroup)
  const versions: string[] = root === '/api' ? ['v1'] : (answer.groups ?? []).map((group: Loose) => group.preferredVersion.groupVersion)
  const lists = await Promise.all(versions.map((version) => call(`${base(place)}${root}/${version}`).catch(() => null)))
  return lists.flatMap((list) => (list ? fromList(list) : []))
}

/** Every resource of a group in the first version that has it: versions come in order of preference. */
export function fromGroup(group: Loose): Kind[] {
  const seen = new Set<string>()
  const found: Kind[] = []
  for (const version of group.versions ?? []) {
    for (const resource of version.resources ?? []) {
      if (seen.has(resource.resource)) continue
      seen.add(resource.resource)
      found.push({
        group: group.metadata?.name ?? '',
        version: version.version,
        plural: resource.resource,
        kind: resource.responseKind?.kind ?? resource.resource,
        namespaced: resource.scope === 'Namespaced',
        verbs: resource.verbs ?? [],
        shortNames: resource.shortNames ?? [],
        categories: resource.categories ?? [],
        subresources: (resource.subresources ?? []).map((sub: Loose) => sub.subresource),
      })
    }
  }
  return found
}

function fromList(list: Loose): Kind[] {
  const [first, second] = String(list.groupVersion).split('/')
  const group = second ? (first ?? '') : ''
  const version = second ?? first ?? 'v1'
  const all: Loose[] = list.resources ?? []
  return all
    .filter((resource) => !resource.name.includes('/'))
    .map((resource) => ({
      group,
      version,
      plural: resource.name,
      kind: resource.kind,
      namespaced: resource.namespaced,
      verbs: resource.verbs ?? [],
      shortNames: resource.shortNames ?? [],
      categories: resource.categories ?? [],
      subresources: all.filter((sub) => sub.name.startsWith(`${resource.name}/`)).map((sub) => sub.name.slice(resource.name.length + 1)),
    }))
}

export function findKind(kinds: Kind[] | undefined, group: string, kind: string): Kind | undefined {
  return kinds?.find((one) => one.group === group && one.kind === kind)
}
