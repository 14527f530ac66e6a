// The token of whoever is signed in; empty for who shows a certificate. It lives as long as the browser tab.

const KEY = 'atoll.token'
const listeners = new Set<() => void>()
let expired = false

export function token(): string | null {
  return sessionStorage.getItem(KEY)
}

export function signIn(value: string): void {
  expired = false
  sessionStorage.setItem(KEY, value)
  tell()
}

/** Forgets the token; `refused` says that the server did not take it any more. */
export function signOut(refused = false): void {
  expired = refused && token() !== null
  sessionStorage.removeItem(KEY)
  tell()
}

export function wasRefused(): boolean {
  return expired
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function tell(): void {
  for (const listener of listeners) listener()
}
