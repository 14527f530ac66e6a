// Words of the console. English is built in; other languages come when they are asked for.

import { useSyncExternalStore } from 'react'
import { en } from './en'

type Every = keyof typeof en
export type Word = Exclude<Every, `${string}_one`>
export type Words = Record<Word, string>
export type Language = 'en' | 'zh'

const KEY = 'atoll.language'
const listeners = new Set<() => void>()
let words: Words = en
let language: Language = 'en'

export function preferredLanguage(): Language {
  const kept = localStorage.getItem(KEY)
  if (kept === 'en' || kept === 'zh') return kept
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export async function setLanguage(next: Language): Promise<void> {
  words = next === 'zh' ? (await import('./zh')).zh : en
  language = next
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en'
  for (const listener of listeners) listener()
}

export function keepLanguage(next: Language): void {
  localStorage.setItem(KEY, next)
  void setLanguage(next)
}

/** Rerenders when the language changes. */
export function useLanguage(): Language {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => language,
  )
}

type Values = Record<string, string | number>

/** A sentence with its blanks filled. A word ending in `_one` is taken when `n` is 1. */
export function t(word: Word, values?: Values): string {
  let text = words[word]
  if (values?.n === 1) text = (words as Record<string, string>)[`${word}_one`] ?? text
  return values ? fill(text, values) : text
}

export function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole))
}
