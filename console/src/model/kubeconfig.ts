// What a kubeconfig says about one cluster: where it is, whom to trust, and as whom.

import type { Loose } from '../api/types'

export interface Credentials {
  server: string
  /** In base64. */
  ca?: string
  token: string
}

export type Reading = { found: Credentials } | { problem: 'unreadable' | 'insecure' | 'no-token' | 'program' }

/** Reads the current context of a kubeconfig that was parsed. */
export function readKubeconfig(config: Loose): Reading {
  const named = (list: Loose, name: string) => (Array.isArray(list) ? list.find((one: Loose) => one?.name === name) : undefined)
  const contexts: Loose[] = Array.isArray(config?.contexts) ? config.contexts : []
  const context = (named(contexts, config?.['current-context']) ?? (contexts.length === 1 ? contexts[0] : undefined))?.context
  const cluster = named(config?.clusters, context?.cluster)?.cluster
  const user = named(config?.users, context?.user)?.user
  if (typeof cluster?.server !== 'string' || !user) return { problem: 'unreadable' }
  if (!cluster.server.startsWith('https://') || cluster['insecure-skip-tls-verify']) return { problem: 'insecure' }
  if (user.exec || user['auth-provider']) return { problem: 'program' }
  if (typeof user.token !== 'string' || !user.token) return { problem: 'no-token' }
  return { found: { server: cluster.server.replace(/\/$/, ''), ca: cluster['certificate-authority-data'], token: user.token } }
}
