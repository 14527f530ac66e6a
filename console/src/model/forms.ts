// New objects as forms: for each kind its fields, and what they write. What a form does not show is written as YAML.

import type { KObject } from '../api/types'
import type { Word } from '../i18n'

export interface Pair {
  name: string
  value: string
}

/** What was filled in: the fields by their keys, and the list of pairs if the form has one. */
export interface Filled {
  text: Record<string, string>
  pairs: Pair[]
}

export interface FormField {
  key: string
  label: Word
  hint?: Word
  /** What it begins with. */
  first?: string
  placeholder?: string
  options?: string[]
  needed?: boolean
  fits?: RegExp
  /** Takes the whole width. */
  wide?: boolean
}

export interface ObjectForm {
  fields: FormField[]
  pairs?: { label: Word; add: Word; placeholder: string; fits: RegExp }
  /** Everything but kind, name and namespace. */
  write: (filled: Filled) => Written
}

interface Written {
  labels?: Record<string, string>
  [field: string]: unknown
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const QUANTITY = /^\d+(\.\d+)?(m|k|Ki|Mi|Gi|Ti|M|G|T)?$/
const COUNT = /^\d{1,9}$/
const PORT = /^([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])$/

const name: FormField = { key: 'name', label: 'name', hint: 'home.create.name', needed: true, fits: NAME }
const image: FormField = { key: 'image', label: 'workload.image', placeholder: 'nginx:1.29', needed: true }
const replicas: FormField = { key: 'replicas', label: 'workload.replicas', first: '2', needed: true, fits: COUNT }
const rest: FormField[] = [
  { key: 'port', label: 'workload.port', placeholder: '80', fits: PORT },
  { key: 'cpu', label: 'workload.cpu', hint: 'workload.cpu.hint', first: '100m', fits: QUANTITY },
  { key: 'memory', label: 'workload.memory', hint: 'workload.memory.hint', first: '128Mi', fits: QUANTITY },
  { key: 'command', label: 'workload.command', hint: 'workload.command.hint', wide: true },
]
const env = { label: 'workload.env', add: 'workload.env.add', placeholder: 'NAME', fits: /^[-._a-zA-Z][-._a-zA-Z0-9]*$/ } as const
const data = { label: 'form.data', add: 'form.data.add', placeholder: 'key', fits: /^[-._a-zA-Z0-9]{1,253}$/ } as const
const amounts: FormField[] = [
  { key: 'cpu', label: 'cpu', placeholder: '100', fits: QUANTITY },
  { key: 'memory', label: 'memory', placeholder: '200Gi', fits: QUANTITY },
  { key: 'pods', label: 'pods', placeholder: '500', fits: COUNT },
]

// Other groups have kinds of the same names, and their own ways to write them.
const FORMS: Record<string, ObjectForm> = {
  'Deployment.apps': { fields: [name, image, replicas, ...rest], pairs: env, write: (filled) => workload(filled, { replicas: Number(filled.text.replicas) }) },
  'StatefulSet.apps': { fields: [name, image, replicas, ...rest], pairs: env, write: (filled) => workload(filled, { replicas: Number(filled.text.replicas), serviceName: filled.text.name }) },
  'DaemonSet.apps': { fields: [name, image, ...rest], pairs: env, write: (filled) => workload(filled, {}) },
  'Job.batch': { fields: [name, image, { ...replicas, label: 'workload.completions', first: '1' }, ...rest], pairs: env, write: (filled) => ({ labels: labelsOf(filled), spec: job(filled) }) },
  'CronJob.batch': {
    fields: [name, image, { key: 'schedule', label: 'form.schedule', hint: 'form.schedule.hint', first: '0 3 * * *', needed: true, fits: /^(@\w+|\S+( +\S+){4})$/ }, ...rest],
    pairs: env,
    write: (filled) => ({ labels: labelsOf(filled), spec: { schedule: filled.text.schedule, jobTemplate: { spec: job(filled) } } }),
  },
  Service: {
    fields: [
      name,
      { key: 'app', label: 'form.app', hint: 'form.app.hint', needed: true },
      { key: 'port', label: 'form.port', first: '80', needed: true, fits: PORT },
      { key: 'target', label: 'form.target', hint: 'form.target.hint', fits: PORT },
      { key: 'type', label: 'form.type', options: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
    ],
    write: ({ text }) => ({ spec: { type: text.type, selector: { app: text.app }, ports: [{ port: Number(text.port), targetPort: Number(text.target || text.port) }] } }),
  },
  ConfigMap: { fields: [name], pairs: data, write: ({ pairs }) => ({ data: together(pairs) }) },
  Secret: { fields: [name], pairs: data, write: ({ pairs }) => ({ type: 'Opaque', stringData: together(pairs) }) },
  Namespace: { fields: [name], write: () => ({}) },
  PersistentVolumeClaim: {
    fields: [
      name,
      { key: 'size', label: 'form.size', first: '10Gi', needed: true, fits: QUANTITY },
      { key: 'class', label: 'form.class', hint: 'form.class.hint', fits: /^[-.a-z0-9]+$/ },
      { key: 'mode', label: 'form.mode', options: ['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany'] },
    ],
    write: ({ text }) => ({ spec: { accessModes: [text.mode], ...(text.class && { storageClassName: text.class }), resources: { requests: { storage: text.size } } } }),
  },
  ResourceQuota: { fields: [name, ...amounts], write: ({ text }) => ({ spec: { hard: present({ 'requests.cpu': text.cpu, 'requests.memory': text.memory, pods: text.pods }) } }) },
  'FederatedResourceQuota.policy.karmada.io': { fields: [name, ...amounts], write: ({ text }) => ({ spec: { overall: present({ 'requests.cpu': text.cpu, 'requests.memory': text.memory, pods: text.pods }) } }) },
  'Workspace.atoll.io': {
    fields: [name, { key: 'alias', label: 'home.create.alias' }, { key: 'instances', label: 'form.instances', hint: 'form.instances.hint', wide: true, fits: /^[-a-z0-9]+([ ,]+[-a-z0-9]+)*$/ }],
    write: ({ text }) => ({ spec: { ...(text.alias && { alias: text.alias }), instances: (text.instances ?? '').split(/[ ,]+/).filter(Boolean) } }),
  },
}

/** The form of a kind, if it has one. */
export function formOf(group: string, kind: string): ObjectForm | undefined {
  return FORMS[group ? `${kind}.${group}` : kind]
}

/** A form as it is before anything is filled in. */
export function blank(form: ObjectForm): Filled {
  return { text: Object.fromEntries(form.fields.map((field) => [field.key, field.first ?? field.options?.[0] ?? ''])), pairs: [] }
}

/** Keys of fields that the server would refuse; `pairs` if one of those is wrong. */
export function wrong(form: ObjectForm, filled: Filled): string[] {
  const bad = form.fields.filter((field) => !isRight(field, filled.text[field.key]?.trim() ?? '')).map((field) => field.key)
  const names = filled.pairs.map((pair) => pair.name)
  const badPairs = names.some((one) => !form.pairs?.fits.test(one)) || new Set(names).size < names.length
  return badPairs ? [...bad, 'pairs'] : bad
}

function isRight(field: FormField, value: string): boolean {
  return value === '' ? !field.needed : (field.fits?.test(value) ?? true)
}

export function objectOf(form: ObjectForm, filled: Filled, apiVersion: string, kind: string, namespace: string | undefined): KObject {
  const text = Object.fromEntries(Object.entries(filled.text).map(([key, value]) => [key, value.trim()]))
  const { labels, ...parts } = form.write({ text, pairs: filled.pairs })
  return { apiVersion, kind, metadata: { name: text.name ?? '', ...(namespace && { namespace }), ...(labels && { labels }) }, ...parts }
}

function labelsOf({ text }: Filled): Record<string, string> {
  return { app: text.name ?? '' }
}

function workload(filled: Filled, more: object): Written {
  const labels = labelsOf(filled)
  return { labels, spec: { ...more, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container(filled)] } } } }
}

function job(filled: Filled): object {
  const times = filled.text.replicas ? { completions: Number(filled.text.replicas), parallelism: Number(filled.text.replicas) } : {}
  return { ...times, template: { metadata: { labels: labelsOf(filled) }, spec: { restartPolicy: 'Never', containers: [container(filled)] } } }
}

function container({ text, pairs }: Filled): object {
  const requests = present({ cpu: text.cpu, memory: text.memory })
  return {
    name: 'main',
    image: text.image,
    ...(text.command && { command: ['sh', '-c', text.command] }),
    ...(text.port && { ports: [{ containerPort: Number(text.port) }] }),
    ...(pairs.length > 0 && { env: pairs.map((pair) => ({ name: pair.name, value: pair.value })) }),
    ...(Object.keys(requests).length > 0 && { resources: { requests } }),
  }
}

function together(pairs: Pair[]): Record<string, string> {
  return Object.fromEntries(pairs.map((pair) => [pair.name, pair.value]))
}

function present(all: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(all).filter((one): one is [string, string] => Boolean(one[1])))
}
