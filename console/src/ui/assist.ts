// Help while writing: what may stand here, what it means, and what is wrong.

import { autocompletion, type CompletionContext, completionKeymap, type CompletionResult } from '@codemirror/autocomplete'
import { linter, lintGutter, lintKeymap } from '@codemirror/lint'
import type { Extension } from '@codemirror/state'
import { hoverTooltip, keymap, type EditorView } from '@codemirror/view'
import { schemasOf } from '../api/schemas'
import { type Place, splitApiVersion } from '../api/paths'
import { complaints } from '../model/complaints'
import { documentAt, kindOf, spotAt } from '../model/outline'
import { fieldsOf, schemaAt, schemaOf, type Schema, type Schemas, typeName, valuesOf } from '../model/schema'

const WORD = /[\w./-]*$/

interface Known {
  all: Schemas
  schema: Schema
  path: string[]
  beside: string[]
  valueOf: string | null
}

export function assist(place: Place, text: string): Extension {
  // Asked for now, so that it is there when the first key is pressed.
  void know(place, text, 0, 0)
  return [
    autocompletion({ override: [(context) => offer(place, context)], icons: false, activateOnTyping: true }),
    linter((view) => judge(place, view), { delay: 400 }),
    lintGutter(),
    hoverTooltip((view, position) => explain(place, view, position)),
    keymap.of([...completionKeymap, ...lintKeymap]),
  ]
}

async function know(place: Place, text: string, line: number, column: number): Promise<Known | null> {
  const around = documentAt(text.split('\n'), line)
  const { apiVersion, kind } = kindOf(around.lines)
  const { group, version } = splitApiVersion(apiVersion)
  const all = version && kind ? await schemasOf(place, group, version) : null
  const schema = all && schemaOf(all, group, version, kind)
  return all && schema ? { all, schema, ...spotAt(around.lines, around.at, column) } : null
}

async function offer(place: Place, context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos)
  const word = context.matchBefore(WORD)
  if (!context.explicit && !word?.text) return null
  const known = await know(place, context.state.doc.toString(), line.number - 1, context.pos - line.from)
  if (!known) return null
  const from = word?.from ?? context.pos
  if (known.valueOf) {
    const values = valuesOf(schemaAt(known.schema, [...known.path, known.valueOf], known.all))
    return values.length ? { from, options: values.map((label) => ({ label, type: 'constant' })) } : null
  }
  const fields = fieldsOf(schemaAt(known.schema, known.path, known.all), known.all).filter((field) => !known.beside.includes(field.name))
  if (fields.length === 0) return null
  return {
    from,
    validFor: /^[\w./-]*$/,
    options: fields.map((field) => ({ label: field.name, apply: `${field.name}: `, detail: field.type, info: field.about || undefined, boost: field.required ? 50 : 0, type: 'property' })),
  }
}

async function judge(place: Place, view: EditorView) {
  const text = view.state.doc.toString()
  const found = await complaints(text, (group, version) => schemasOf(place, group, version))
  return found.map((one) => ({ from: one.from, to: Math.min(text.length, Math.max(one.to, one.from)), message: one.text, severity: one.severe ? ('error' as const) : ('warning' as const) }))
}

async function explain(place: Place, view: EditorView, position: number) {
  const line = view.state.doc.lineAt(position)
  const key = /^(\s*(?:- +)*)["']?([\w./-]+)["']? *:/.exec(line.text)
  const start = line.from + (key?.[1]?.length ?? 0)
  const name = key?.[2] ?? ''
  if (!key || position < start || position > start + name.length) return null
  const known = await know(place, view.state.doc.toString(), line.number - 1, key[1]?.length ?? 0)
  const schema = known && schemaAt(known.schema, [...known.path, name], known.all)
  const about = known && fieldsOf(schemaAt(known.schema, known.path, known.all), known.all).find((one) => one.name === name)?.about
  if (!schema || !about) return null
  const create = () => {
    const dom = document.createElement('div')
    dom.className = 'cm-about'
    const type = document.createElement('strong')
    type.textContent = `${name}: ${typeName(schema, known.all)}`
    const text = document.createElement('div')
    text.textContent = about
    dom.append(type, text)
    return { dom }
  }
  return { pos: start, end: start + name.length, create }
}
