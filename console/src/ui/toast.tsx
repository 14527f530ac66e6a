// Short messages about what was just done.

import { useSyncExternalStore } from 'react'
import { ApiError } from '../api/http'
import type { Tone } from '../model/health'
import { Notice, remedy } from './parts'

interface Toast {
  id: number
  tone: Tone
  title: string
  detail?: string
}

let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()

function set(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

export function toast(tone: Tone, title: string, detail?: string): void {
  last += 1
  const id = last
  set([...toasts.slice(-3), { id, tone, title, detail }])
  setTimeout(() => set(toasts.filter((one) => one.id !== id)), tone === 'bad' ? 12_000 : 4500)
}

export function toastError(title: string, error: unknown): void {
  toast('bad', title, error instanceof ApiError ? `${error.message} ${remedy(error)}` : String(error))
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div className="toasts" aria-live="polite">
      {shown.map((one) => (
        <Notice key={one.id} tone={one.tone} title={one.title}>
          {one.detail}
        </Notice>
      ))}
    </div>
  )
}
