// What every Kubernetes object has. Kinds are data here, as in the server.

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
