// What an OpenAPI schema says about a place in an object.

import type { Loose } from '../api/types'

export type Schema = Loose
export type Schemas = Record<string, Schema>

const REFERENCE = '#/components/schemas/'

/** The schema itself, through references and the wrappers that Kubernetes puts around them. */
export function resolve(schema: Schema, all: Schemas): Schema {
  let here = schema
  for (let step = 0; here && step < 20; step += 1) {
    const reference: string | undefined = here.$ref ?? (here.allOf?.length === 1 ? here.allOf[0].$ref : undefined)
    if (!reference) return here
    const next = all[reference.slice(REFERENCE.length)]
    here = here.description && next ? { ...next, description: here.description } : next
  }
  return here
}

/** The schema of a kind in a description of its group and version. */
export function schemaOf(all: Schemas, group: string, version: string, kind: string): Schema | undefined {
  return Object.values(all).find((one) => (one['x-kubernetes-group-version-kind'] ?? []).some((gvk: Loose) => gvk.group === group && gvk.version === version && gvk.kind === kind))
}

export function schemaAt(schema: Schema | undefined, path: string[], all: Schemas): Schema | undefined {
  let here = resolve(schema, all)
  for (const key of path) {
    if (!here) return undefined
    here = resolve(key === '[]' ? here.items : (here.properties?.[key] ?? (typeof here.additionalProperties === 'object' ? here.additionalProperties : undefined)), all)
  }
  return here
}

export interface FieldInfo {
  name: string
  type: string
  required: boolean
  about: string
}

export function fieldsOf(schema: Schema | undefined, all: Schemas): FieldInfo[] {
  const required = new Set<string>(schema?.required ?? [])
  return Object.entries<Schema>(schema?.properties ?? {}).map(([name, one]) => {
    const own = resolve(one, all)
    return { name, type: typeName(own, all), required: required.has(name), about: String(one.description ?? own?.description ?? '') }
  })
}

export function typeName(schema: Schema | undefined, all: Schemas): string {
  if (!schema) return ''
  if (schema['x-kubernetes-int-or-string'] || schema.oneOf) return 'number or string'
  if (schema.type === 'array') return `list of ${typeName(resolve(schema.items, all), all)}`
  if (schema.type === 'object' || schema.properties) return schema.additionalProperties ? 'map' : 'object'
  return schema.type ?? ''
}

/** Values worth offering. */
export function valuesOf(schema: Schema | undefined): string[] {
  if (schema?.enum) return schema.enum.map(String)
  return schema?.type === 'boolean' ? ['true', 'false'] : []
}

/** Whether a plain value fits; null when it does, else what was expected. */
export function misfit(value: unknown, schema: Schema | undefined, all: Schemas): string | null {
  if (!schema || value === null || schema['x-kubernetes-preserve-unknown-fields']) return null
  if (schema.enum && !schema.enum.includes(value)) return schema.enum.join(', ')
  if (schema['x-kubernetes-int-or-string'] || schema.oneOf || !schema.type) return null
  const fits: Record<string, boolean> = {
    string: typeof value === 'string',
    integer: Number.isInteger(value),
    number: typeof value === 'number',
    boolean: typeof value === 'boolean',
    array: Array.isArray(value),
    object: typeof value === 'object' && !Array.isArray(value),
  }
  return fits[schema.type] === false ? typeName(schema, all) : null
}

/** Whether keys beyond those described are taken. */
export function isOpen(schema: Schema): boolean {
  return !schema.properties || Boolean(schema.additionalProperties) || Boolean(schema['x-kubernetes-preserve-unknown-fields']) || Boolean(schema['x-kubernetes-embedded-resource'])
}
