import { expect, it } from 'vitest'
import { plainText, splitTime } from './ansi'

it.each([
  ['\x1b[31mred\x1b[0m', 'red'],
  ['\x1b]0;title\x07text', 'text'],
  ['\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\', 'link'],
  ['\x1bP+q544e\x1b\\x', 'x'],
  ['a\x00b\x07c\rd', 'abcd'],
  ['\u202egnp.exe', 'gnp.exe'],
  ['tab\tstays', 'tab\tstays'],
  ['\x1b[2J\x1b[H<script>alert(1)</script>', '<script>alert(1)</script>'],
])('%j reads as %j', (line, text) => expect(plainText(line)).toBe(text))

it('the time is told from the line', () => {
  expect(splitTime('2026-01-02T03:04:05.678901234Z hello')).toEqual({ time: '2026-01-02T03:04:05.678901234Z', text: 'hello' })
  expect(splitTime('hello')).toEqual({ time: '', text: 'hello' })
})
