// A workload as a form shows it. What the form does not show is written as YAML.

import type { KObject, Loose } from '../api/types'

export interface Workload {
  name: string
  image: string
  replicas: number
  port: string
  cpu: string
  memory: string
  command: string
  env: { name: string; value: string }[]
}

/** Kinds that have a form. */
export const FORMS = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job']

export const FIRST: Workload = { name: '', image: '', replicas: 2, port: '', cpu: '100m', memory: '128Mi', command: '', env: [] }

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const QUANTITY = /^\d+(\.\d+)?(m|k|Ki|Mi|Gi|Ti|M|G|T)?$/

/** Fields that the server would refuse. */
export function wrong(form: Workload): (keyof Workload)[] {
  const bad: (keyof Workload)[] = []
  if (!NAME.test(form.name)) bad.push('name')
  if (!form.image.trim()) bad.push('image')
  if (!Number.isInteger(form.replicas) || form.replicas < 0) bad.push('replicas')
  if (form.port && !(/^\d+$/.test(form.port) && Number(form.port) > 0 && Number(form.port) < 65536)) bad.push('port')
  if (form.cpu && !QUANTITY.test(form.cpu)) bad.push('cpu')
  if (form.memory && !QUANTITY.test(form.memory)) bad.push('memory')
  if (form.env.some((one) => !/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(one.name))) bad.push('env')
  return bad
}

export function objectOf(form: Workload, apiVersion: string, kind: string, namespace: string): KObject {
  const labels = { app: form.name }
  const requests = { ...(form.cpu && { cpu: form.cpu }), ...(form.memory && { memory: form.memory }) }
  const container: Loose = {
    name: 'main',
    image: form.image.trim(),
    ...(form.command.trim() && { command: ['sh', '-c', form.command.trim()] }),
    ...(form.port && { ports: [{ containerPort: Number(form.port) }] }),
    ...(form.env.length > 0 && { env: form.env.map(({ name, value }) => ({ name, value })) }),
    ...(Object.keys(requests).length > 0 && { resources: { requests } }),
  }
  const template = { metadata: { labels }, spec: { ...(kind === 'Job' && { restartPolicy: 'Never' }), containers: [container] } }
  const spec: Loose =
    kind === 'Job'
      ? { completions: form.replicas, parallelism: form.replicas, template }
      : { ...(kind !== 'DaemonSet' && { replicas: form.replicas }), ...(kind === 'StatefulSet' && { serviceName: form.name }), selector: { matchLabels: labels }, template }
  return { apiVersion, kind, metadata: { name: form.name, namespace, labels }, spec }
}
