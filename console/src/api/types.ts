// What every Kubernetes object has. Kinds are data here, as in the server; those the console knows by name have their types
// from the OpenAPI of the hub.

import type { Objects } from './generated'

export interface Owner {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
}

export interface Meta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: Owner[]
  finalizers?: string[]
  managedFields?: unknown
}

export interface Condition {
  type: string
  status: string
  reason?: string
  message?: string
  lastTransitionTime?: string
}

// Specs and statuses differ by kind; readers take what they find.
// biome-ignore lint/suspicious/noExplicitAny: shapes come from the server
export type Loose = any

export interface KObject {
  apiVersion?: string
  kind?: string
  metadata: Meta
  spec?: Loose
  status?: Loose
  [field: string]: Loose
}

/** Somebody who was given something. */
export interface Subject {
  kind: string
  name: string
  namespace?: string
}

/** What the server says about who asks. */
export interface SelfReview {
  status?: { userInfo?: { username?: string; groups?: string[] } }
}

export interface Column {
  name: string
  type: string
  format?: string
  description?: string
  priority: number
}

export interface Status {
  kind: 'Status'
  code?: number
  reason?: string
  message?: string
  details?: { name?: string; kind?: string; group?: string; causes?: { field?: string; message?: string; reason?: string }[] }
}

/** An object of a kind that the console knows by name. A server may leave parts out, so readers look before they reach. */
export type Of<K extends keyof Objects> = Partial<Omit<Objects[K], 'metadata'>> & { metadata: Meta }
