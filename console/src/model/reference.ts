import { pluralOf } from '../api/index-search'
import { type Resource, splitApiVersion } from '../api/paths'

/** The resource of a reference by kind. Kinds that pluralise oddly are looked up by those who know the server. */
export function resourceOf(reference: { apiVersion?: string; kind?: string }): Resource {
  const { group, version } = splitApiVersion(reference.apiVersion || 'v1')
  return { group, version, plural: pluralOf(reference.kind ?? '') }
}
