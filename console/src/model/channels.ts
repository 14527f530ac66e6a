// The frames of `v5.channel.k8s.io`: one byte says which stream, the rest is its data.

export const STDIN = 0
export const STDOUT = 1
export const STDERR = 2
export const OUTCOME = 3
export const RESIZE = 4
export const CLOSE = 255

export const PROTOCOL = 'v5.channel.k8s.io'

export function frame(channel: number, data: Uint8Array | string): Uint8Array<ArrayBuffer> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  const out = new Uint8Array(bytes.length + 1)
  out[0] = channel
  out.set(bytes, 1)
  return out
}

/** A browser cannot set headers on a websocket; the token goes along as a protocol. */
export function bearerProtocol(token: string): string {
  const binary = String.fromCharCode(...new TextEncoder().encode(token))
  const encoded = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  return `base64url.bearer.authorization.k8s.io.${encoded}`
}

export interface Outcome {
  ok: boolean
  message: string
}

/** How the command ended, as the last frame tells it. */
export function outcome(text: string): Outcome {
  try {
    const status = JSON.parse(text)
    if (status.status === 'Success') return { ok: true, message: '' }
    const code = status.details?.causes?.find((cause: { reason?: string }) => cause.reason === 'ExitCode')?.message
    return { ok: false, message: code ? `exit ${code}` : (status.message ?? text) }
  } catch {
    return { ok: false, message: text }
  }
}
