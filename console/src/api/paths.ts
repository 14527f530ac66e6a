// Where things are: an instance of the hub, or a member behind one.

import { type Objects, RESOURCES } from './generated'

export interface Place {
  instance: string
  member?: string
}

export interface Resource {
  group: string
  version: string
  plural: string
}

/** A resource whose objects have a type. */
export interface Known<K extends keyof Objects> extends Resource {
  kind: K
}

export interface At {
  namespace?: string
  name?: string
  subresource?: string
}

export type Query = Record<string, string | number | boolean | undefined>

const enc = encodeURIComponent

export const res = (group: string, version: string, plural: string): Resource => ({ group, version, plural })

export const CLUSTERS: Known<'Cluster'> = RESOURCES.Cluster
export const BINDINGS: Known<'ResourceBinding'> = RESOURCES.ResourceBinding
export const CLUSTER_BINDINGS: Known<'ClusterResourceBinding'> = RESOURCES.ClusterResourceBinding
export const WORKS: Known<'Work'> = RESOURCES.Work
export const POLICIES: Known<'PropagationPolicy'> = RESOURCES.PropagationPolicy
export const CLUSTER_POLICIES: Known<'ClusterPropagationPolicy'> = RESOURCES.ClusterPropagationPolicy
export const OVERRIDES: Known<'OverridePolicy'> = RESOURCES.OverridePolicy
export const CLUSTER_OVERRIDES: Known<'ClusterOverridePolicy'> = RESOURCES.ClusterOverridePolicy
export const INSTANCES: Known<'Instance'> = RESOURCES.Instance
export const GRANTS: Known<'Grant'> = RESOURCES.Grant
export const LENDERS: Known<'ClusterBinding'> = RESOURCES.ClusterBinding
export const LEASES: Known<'ResourceLeasingPolicy'> = RESOURCES.ResourceLeasingPolicy
export const NODES: Known<'Node'> = RESOURCES.Node
export const PODS: Known<'Pod'> = RESOURCES.Pod
export const EVENTS: Known<'Event'> = RESOURCES.Event
export const NAMESPACES: Known<'Namespace'> = RESOURCES.Namespace
export const DEPLOYMENTS: Known<'Deployment'> = RESOURCES.Deployment

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
