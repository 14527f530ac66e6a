// Where things are: an instance of the hub, or a member behind one.

export interface Place {
  instance: string
  member?: string
}

export interface Resource {
  group: string
  version: string
  plural: string
}

export interface At {
  namespace?: string
  name?: string
  subresource?: string
}

export type Query = Record<string, string | number | boolean | undefined>

const enc = encodeURIComponent

export const res = (group: string, version: string, plural: string): Resource => ({ group, version, plural })

export const CLUSTERS = res('cluster.karmada.io', 'v1alpha1', 'clusters')
export const BINDINGS = res('work.karmada.io', 'v1alpha2', 'resourcebindings')
export const CLUSTER_BINDINGS = res('work.karmada.io', 'v1alpha2', 'clusterresourcebindings')
export const WORKS = res('work.karmada.io', 'v1alpha1', 'works')
export const POLICIES = res('policy.karmada.io', 'v1alpha1', 'propagationpolicies')
export const CLUSTER_POLICIES = res('policy.karmada.io', 'v1alpha1', 'clusterpropagationpolicies')
export const OVERRIDES = res('policy.karmada.io', 'v1alpha1', 'overridepolicies')
export const CLUSTER_OVERRIDES = res('policy.karmada.io', 'v1alpha1', 'clusteroverridepolicies')
export const INSTANCES = res('atoll.io', 'v1alpha1', 'instances')
export const LENDERS = res('cloud.tencent.com', 'v1beta1', 'clusterbindings')
export const LEASES = res('cloud.tencent.com', 'v1beta1', 'resourceleasingpolicies')
export const NODES = res('', 'v1', 'nodes')
export const PODS = res('', 'v1', 'pods')
export const EVENTS = res('', 'v1', 'events')
export const NAMESPACES = res('', 'v1', 'namespaces')
export const DEPLOYMENTS = res('apps', 'v1', 'deployments')

/** The part of the path before `/api` and `/apis`. */
export function base(place: Place): string {
  const hub = place.instance === 'root' ? '' : `/instances/${enc(place.instance)}`
  return place.member ? `${hub}/apis/cluster.karmada.io/v1alpha1/clusters/${enc(place.member)}/proxy` : hub
}

export function path(place: Place, resource: Resource, at: At = {}, query: Query = {}): string {
  const group = resource.group ? `/apis/${enc(resource.group)}` : '/api'
  let out = `${base(place)}${group}/${enc(resource.version)}`
  if (at.namespace) out += `/namespaces/${enc(at.namespace)}`
  out += `/${enc(resource.plural)}`
  if (at.name) out += `/${enc(at.name)}`
  if (at.subresource) out += `/${at.subresource}`
  return withQuery(out, query)
}

export function withQuery(url: string, query: Query): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  if (pairs.length === 0) return url
  const text = pairs.map(([key, value]) => `${enc(key)}=${enc(String(value))}`).join('&')
  return `${url}${url.includes('?') ? '&' : '?'}${text}`
}

export function apiVersion(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version
}

export function splitApiVersion(text: string): { group: string; version: string } {
  const slash = text.indexOf('/')
  return slash < 0 ? { group: '', version: text } : { group: text.slice(0, slash), version: text.slice(slash + 1) }
}
