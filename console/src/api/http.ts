// One way to the server: same origin, the user's own token, errors as the API tells them.

import { signOut, token } from '../session'
import type { Loose, Status } from './types'

export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

export class ApiError extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
    readonly status?: Status,
  ) {
    super(message)
  }

  /** A problem of any kind as one of these; `code` is for what no server said. */
  static of(problem: unknown, code = 0, reason = ''): ApiError {
    if (problem instanceof ApiError) return problem
    return new ApiError(code, reason, problem instanceof Error ? problem.message : String(problem))
  }
}

export interface Call {
  method?: string
  body?: unknown
  accept?: string
  contentType?: string
  signal?: AbortSignal
}

/** The answer as it comes, for streams; throws what is no success. */
export async function open(url: string, call: Call = {}): Promise<Response> {
  const headers: Record<string, string> = { accept: call.accept ?? 'application/json' }
  const secret = token()
  if (secret) headers.authorization = `Bearer ${secret}`
  if (call.body !== undefined) headers['content-type'] = call.contentType ?? 'application/json'
  const body = call.body === undefined ? undefined : typeof call.body === 'string' ? call.body : JSON.stringify(call.body)
  let response: Response
  try {
    // Only with credentials does the browser show its certificate.
    const credentials = secret === '' ? 'same-origin' : 'omit'
    response = await fetch(url, { method: call.method ?? 'GET', headers, body, signal: call.signal, credentials, redirect: 'error' })
  } catch (cause) {
    if (call.signal?.aborted) throw cause
    throw new ApiError(0, 'Unreachable', cause instanceof Error ? cause.message : String(cause))
  }
  if (response.ok) return response
  const error = await failure(response)
  // Another token may have been entered meanwhile; only the one that was refused is dropped.
  // A certificate of the hub may be unknown in an instance; it is good nevertheless.
  const elsewhere = secret === '' && url.startsWith('/instances/')
  if (error.code === 401 && token() === secret && !elsewhere) signOut(true)
  throw error
}

export async function call<T = Loose>(url: string, options: Call = {}): Promise<T> {
  const response = await open(url, options)
  return (await response.json()) as T
}

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  try {
    const status = JSON.parse(text) as Status
    if (status.kind === 'Status') {
      return new ApiError(response.status, status.reason ?? '', status.message || response.statusText, status)
    }
  } catch {
    // Not every answer is a Status: proxies and old servers speak plain text.
  }
  return new ApiError(response.status, '', text.trim().slice(0, 500) || response.statusText || `HTTP ${response.status}`)
}

/** The lines of a stream as they come. */
export async function* lines(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const parts = (rest + value).split('\n')
      rest = parts.pop() ?? ''
      yield* parts
    }
    if (rest) yield rest
  } finally {
    reader.cancel().catch(() => {})
  }
}
