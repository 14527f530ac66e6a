// Addresses inside the console.

import type { Place, Query, Resource } from '../api/paths'
import { withQuery } from '../api/paths'

const enc = encodeURIComponent
const groupPart = (group: string) => group || 'core'

export const home = '/'

export function instanceLink(instance: string, page = '', query: Query = {}): string {
  return withQuery(`/i/${enc(instance)}${page ? `/${page}` : ''}`, query)
}

export function listLink(place: Place, resource: Resource, query: Query = {}): string {
  return withQuery(`/i/${enc(place.instance)}/r/${groupPart(resource.group)}/${resource.version}/${resource.plural}`, { m: place.member, ...query })
}

export function objectLink(place: Place, resource: Resource, namespace: string | undefined, name: string, query: Query = {}): string {
  const where = `${groupPart(resource.group)}/${resource.version}/${resource.plural}/${enc(namespace || '-')}/${enc(name)}`
  return withQuery(`/i/${enc(place.instance)}/o/${where}`, { m: place.member, ...query })
}

export function clusterLink(instance: string, name: string): string {
  return `/i/${enc(instance)}/clusters/${enc(name)}`
}

/** Where a policy is changed; with a form, and with what would move. */
export function policyLink(instance: string, plural: string, namespace: string | undefined, name: string): string {
  return `/i/${enc(instance)}/policies/edit/${plural}/${enc(namespace || '-')}/${enc(name)}`
}

export function groupOf(part: string): string {
  return part === 'core' ? '' : part
}
