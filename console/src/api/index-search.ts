// Finding objects anywhere: in the search index where there is one, else among the templates of the instance.

import { type Kind, kindsOf } from './discovery'
import { call } from './http'
import { base, path, type Place, type Resource, res, splitApiVersion, withQuery } from './paths'
import type { KObject } from './types'

export interface Hit {
  object: KObject
  place: Place
  resource: Resource
  kind: string
}

export const CLUSTER_NAME = 'shadow.clusterpedia.io/cluster-name'
const PEDIA = '/apis/clusterpedia.io/v1beta1'
const METADATA = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json'
const MOST = 40
const SOUGHT = 'apps/deployments,apps/statefulsets,apps/daemonsets,batch/jobs,batch/cronjobs,pods,services,configmaps,secrets,nodes,namespaces'
const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'Service', 'Ingress', 'ConfigMap', 'Secret', 'Pod', 'Node', 'Namespace']
const NOISE = new Set(['Event', 'Work', 'EndpointSlice', 'Endpoints', 'ControllerRevision', 'Lease'])
const LOCAL = [res('apps', 'v1', 'deployments'), res('apps', 'v1', 'statefulsets'), res('', 'v1', 'services'), res('', 'v1', 'configmaps'), res('batch', 'v1', 'jobs')]

export function hasIndex(kinds: Kind[] | undefined): boolean {
  return kinds?.some((kind) => kind.group === 'clusterpedia.io') ?? false
}

/** A part of a name as the index takes it in a label value. */
export function fuzzy(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9._-]/g, '').replace(/^[._-]+|[._-]+$/g, '').slice(0, 60)
}

export async function findObjects(place: Place, text: string, signal: AbortSignal): Promise<Hit[]> {
  const kinds = await kindsOf(place)
  const word = fuzzy(text)
  if (!word) return []
  const own = findLocal(place, kinds, word, signal)
  if (!hasIndex(kinds)) return ordered(await own, word).slice(0, MOST)
  // What people look for is asked for by itself, or the events of a busy pod would leave no room for it.
  const indexed = [findIndexed(place, kinds, word, { resources: SOUGHT }, signal), findIndexed(place, kinds, word, { groups: '*' }, signal)]
  return ordered((await Promise.all([own, ...indexed])).flat(), word).slice(0, MOST)
}

async function findIndexed(place: Place, kinds: Kind[], word: string, what: Record<string, string>, signal: AbortSignal): Promise<Hit[]> {
  const url = withQuery(`${base(place)}${PEDIA}/collectionresources/any`, {
    ...what, onlyMetadata: true, limit: 60, labelSelector: `internalstorage.clusterpedia.io/fuzzy-name=${word}`,
  })
  const found = await call(url, { signal })
  return (found.items ?? []).map((object: KObject) => hitOf(place, kinds, object)).filter((hit: Hit | null) => hit !== null)
}

/** Each once; the name that fits best first, then templates, then what people ask for more often. */
export function ordered(hits: Hit[], word: string): Hit[] {
  const known = new Map(hits.map((hit) => [[hit.kind, hit.place.member, hit.object.metadata.namespace, hit.object.metadata.name].join('/'), hit]))
  const order = (hit: Hit) => {
    const { name } = hit.object.metadata
    const kind = KINDS.indexOf(hit.kind)
    return [NOISE.has(hit.kind) ? 1 : 0, name === word ? 0 : name.startsWith(word) ? 1 : 2, hit.place.member ? 1 : 0, kind < 0 ? KINDS.length : kind]
  }
  const keyed = [...known.values()].map((hit) => ({ hit, key: order(hit) }))
  const compare = (a: number[], b: number[]) => a.map((one, at) => one - (b[at] ?? 0)).find((one) => one !== 0) ?? 0
  return keyed.sort((a, b) => compare(a.key, b.key) || a.hit.object.metadata.name.localeCompare(b.hit.object.metadata.name)).map(({ hit }) => hit)
}

export function hitOf(place: Place, kinds: Kind[], object: KObject): Hit | null {
  const { group, version } = splitApiVersion(object.apiVersion ?? 'v1')
  const known = kinds.find((kind) => kind.group === group && kind.kind === object.kind)
  const member = object.metadata.annotations?.[CLUSTER_NAME]
  const resource = known ?? res(group, version, pluralOf(object.kind ?? ''))
  const inMember = member && member !== place.instance ? member.split('/').pop() : undefined
  return { object, kind: object.kind ?? '', resource, place: { instance: place.instance, member: inMember } }
}

/** The usual plural of a kind, for kinds that only a member serves. */
export function pluralOf(kind: string): string {
  const lower = kind.toLowerCase()
  if (/(s|x|ch|sh)$/.test(lower)) return `${lower}es`
  return /[^aeiou]y$/.test(lower) ? `${lower.slice(0, -1)}ies` : `${lower}s`
}

async function findLocal(place: Place, kinds: Kind[], word: string, signal: AbortSignal): Promise<Hit[]> {
  const served = LOCAL.map((resource) => kinds.find((kind) => kind.group === resource.group && kind.plural === resource.plural)).filter((kind) => kind !== undefined)
  const lists = await Promise.all(
    served.map((kind) =>
      call(path(place, kind, {}, { limit: 500 }), { accept: METADATA, signal }).then(
        (list) => (list.items as KObject[]).filter((object) => object.metadata.name.includes(word)).map((object) => ({ object, place, resource: kind, kind: kind.kind })),
        () => [],
      ),
    ),
  )
  return lists.flat().slice(0, 24)
}
