import { expect, it } from 'vitest'
import { en } from './en'
import { zh } from './zh'

const blanks = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort()
const plain = (words: object) => Object.keys(words).filter((word) => !word.endsWith('_one')).sort()

it('every word is there in both languages', () => expect(plain(zh)).toEqual(plain(en)))

it('every blank of a sentence is there in both languages', () => {
  for (const word of plain(en)) expect(blanks((zh as Record<string, string>)[word] ?? ''), word).toEqual(blanks((en as Record<string, string>)[word] ?? ''))
})

it('nothing was left untranslated by mistake', () => {
  const same = plain(en).filter((word) => (en as Record<string, string>)[word] === (zh as Record<string, string>)[word])
  expect(same.filter((word) => /[a-z]{3} [a-z]{3}/.test((en as Record<string, string>)[word] ?? ''))).toEqual([])
})
