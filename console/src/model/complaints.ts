// What is wrong with a YAML text, by the schema of its kinds. The server has the last word; this one is sooner.

import { isMap, isScalar, isSeq, type Node, type Pair, parseAllDocuments } from 'yaml'
import { splitApiVersion } from '../api/paths'
import { t } from '../i18n'
import { isOpen, misfit, resolve, type Schema, type Schemas, schemaOf } from './schema'

export interface Complaint {
  from: number
  to: number
  text: string
  severe: boolean
}

export type Lookup = (group: string, version: string) => Promise<Schemas | null>

export async function complaints(text: string, lookup: Lookup): Promise<Complaint[]> {
  const out: Complaint[] = []
  for (const document of parseAllDocuments(text)) {
    for (const error of document.errors) out.push({ from: error.pos[0], to: error.pos[1], text: error.message.split('\n')[0] ?? '', severe: true })
    if (document.errors.length > 0 || !isMap(document.contents)) continue
    const { group, version } = splitApiVersion(String(document.contents.get('apiVersion') ?? ''))
    const kind = String(document.contents.get('kind') ?? '')
    const all = version && kind ? await lookup(group, version) : null
    const schema = all && schemaOf(all, group, version, kind)
    if (all && schema) walk(document.contents, schema, all, out)
  }
  return out
}

function walk(node: Node | null, unresolved: Schema, all: Schemas, out: Complaint[]): void {
  const schema = resolve(unresolved, all)
  if (!node || !schema) return
  const [from, to] = node.range ?? [0, 0]
  const value = isMap(node) ? {} : isSeq(node) ? [] : isScalar(node) ? node.value : null
  const wanted = misfit(value, schema, all)
  if (wanted) {
    out.push({ from, to, text: t('schema.type', { wanted }), severe: true })
    return
  }
  if (isSeq(node)) for (const item of node.items) walk(item as Node, schema.items, all, out)
  if (isMap(node)) walkMap(node.items as Pair<Node, Node | null>[], [from, to], schema, all, out)
}

function walkMap(pairs: Pair<Node, Node | null>[], [from, to]: [number, number], schema: Schema, all: Schemas, out: Complaint[]): void {
  const seen = new Set<string>()
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? String(key.value) : ''
    seen.add(name)
    const own = schema.properties?.[name]
    const [start, end] = key?.range ?? [from, to]
    if (own) walk(value, own, all, out)
    else if (typeof schema.additionalProperties === 'object') walk(value, schema.additionalProperties, all, out)
    else if (!isOpen(schema)) out.push({ from: start, to: end, text: t('schema.unknown', { name }), severe: true })
  }
  for (const name of schema.required ?? []) {
    if (!seen.has(name)) out.push({ from, to: Math.min(to, from + 1), text: t('schema.required', { name }), severe: false })
  }
}
