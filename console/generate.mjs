// Writes src/api/generated.ts from the OpenAPI descriptions of a running hub: where each kind is, and what its
// objects look like. `npm run generate` with ATOLL_URL and ATOLL_TOKEN; the browser tests hold the file to the hub.

import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

export const FILE = new URL('./src/api/generated.ts', import.meta.url).pathname

/** What the console knows by name: instance, group and version, kinds. Other kinds are data to it. */
const WANTED = [
  ['fleet', 'api/v1', ['Event', 'Namespace', 'Node', 'Pod']],
  ['fleet', 'apis/apps/v1', ['Deployment']],
  ['fleet', 'apis/cluster.karmada.io/v1alpha1', ['Cluster']],
  ['fleet', 'apis/policy.karmada.io/v1alpha1', ['PropagationPolicy', 'ClusterPropagationPolicy', 'OverridePolicy', 'ClusterOverridePolicy']],
  ['fleet', 'apis/work.karmada.io/v1alpha1', ['Work']],
  ['fleet', 'apis/work.karmada.io/v1alpha2', ['ResourceBinding', 'ClusterResourceBinding']],
  ['root', 'apis/atoll.io/v1alpha1', ['AccessRole', 'Account', 'Grant', 'IdentityProvider', 'Instance', 'Workspace']],
  ['compute', 'apis/cloud.tencent.com/v1beta1', ['ClusterBinding', 'ResourceLeasingPolicy']],
]

/** The text of the file, from what a hub says of itself. */
export async function generate(url, token) {
  const kinds = []
  const types = new Map()
  for (const [instance, version, names] of WANTED) {
    const from = `${url}${instance === 'root' ? '' : `/instances/${instance}`}/openapi/v3/${version}`
    const answer = await fetch(from, { headers: { authorization: `Bearer ${token}` } })
    if (!answer.ok) throw new Error(`${from}: ${answer.status}`)
    const document = await answer.json()
    for (const kind of names) kinds.push(place(document, version, kind, types))
  }
  const resources = kinds.map(({ kind, at }) => `  ${kind}: ${JSON.stringify(at)},`)
  const objects = kinds.map(({ kind, type }) => `  ${kind}: ${type}`)
  const shapes = [...types].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => `export type ${name} = ${text}`)
  return [
    '// Written by `npm run generate` from the OpenAPI of the hub. Do not edit.', '',
    '/** Where the objects of each kind are. */', 'export const RESOURCES = {', ...resources, '} as const', '',
    '/** What the objects of each kind look like. */', 'export interface Objects {', ...objects, '}', '', ...shapes, '',
  ].join('\n')
}

function place(document, version, kind, types) {
  const [, group, name] = version.startsWith('apis/') ? version.split('/') : ['', '', version.split('/')[1]]
  const found = Object.entries(document.paths).find(([path, item]) => !path.includes('{') && item.get?.['x-kubernetes-group-version-kind']?.kind === kind)
  if (!found) throw new Error(`${version} does not list ${kind}`)
  const namespaced = Object.keys(document.paths).some((path) => path.endsWith(`/namespaces/{namespace}/${found[0].split('/').at(-1)}`))
  const schemas = document.components.schemas
  const schema = Object.keys(schemas).find((one) => schemas[one]['x-kubernetes-group-version-kind']?.some((gvk) => gvk.group === group && gvk.version === name && gvk.kind === kind))
  return { kind, at: { group, version: name, plural: found[0].split('/').at(-1), kind, namespaced }, type: named(schema, schemas, types) }
}

/** The type of a named schema; it is written once. Versions of a kind are told apart by their name. */
function named(reference, schemas, types) {
  const parts = reference.replace('#/components/schemas/', '').split('.')
  const name = /^v\d/.test(parts.at(-2)) ? parts.at(-1) + (parts.at(-2) === 'v1' ? '' : parts.at(-2)) : parts.at(-1)
  if (!types.has(name)) {
    types.set(name, '')
    types.set(name, typeOf(schemas[reference.replace('#/components/schemas/', '')], schemas, types))
  }
  return name
}

function typeOf(schema, schemas, types) {
  if (!schema) return 'unknown'
  if (schema.$ref) return named(schema.$ref, schemas, types)
  if (schema.allOf?.length === 1) return typeOf(schema.allOf[0], schemas, types)
  if (schema['x-kubernetes-int-or-string']) return 'string | number'
  if (schema.oneOf) return [...new Set(schema.oneOf.map((one) => typeOf(one, schemas, types)))].join(' | ')
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (schema.type === 'array') return `Array<${typeOf(schema.items, schemas, types)}>`
  if (schema.properties) return shape(schema, schemas, types)
  if (schema.additionalProperties) return `Record<string, ${typeOf(schema.additionalProperties, schemas, types)}>`
  return { string: 'string', integer: 'number', number: 'number', boolean: 'boolean' }[schema.type] ?? 'unknown'
}

function shape(schema, schemas, types) {
  const required = new Set(schema.required)
  const fields = Object.entries(schema.properties).sort(([a], [b]) => (a < b ? -1 : 1))
  const key = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name))
  return `{ ${fields.map(([name, one]) => `${key(name)}${required.has(name) ? '' : '?'}: ${typeOf(one, schemas, types)}`).join('; ')} }`
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const token = process.env.ATOLL_TOKEN ?? readFileSync(`${process.env.ATOLL_DATA_DIR ?? 'atoll-data'}/admin.token`, 'utf8').trim()
  writeFileSync(FILE, await generate(process.env.ATOLL_URL ?? 'https://127.0.0.1:7443', token))
}
