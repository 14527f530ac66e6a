import { expect, it } from 'vitest'
import { bearerProtocol, frame, outcome, RESIZE } from './channels'

it('a frame is a channel and its data', () => {
  expect([...frame(RESIZE, '{}')]).toEqual([4, 123, 125])
})

it('a token has no characters that a protocol name may not have', () => {
  expect(bearerProtocol('a??>~é')).toMatch(/^base64url\.bearer\.authorization\.k8s\.io\.[A-Za-z0-9_-]+$/)
  expect(bearerProtocol('tok')).toBe('base64url.bearer.authorization.k8s.io.dG9r')
})

it.each([
  ['{"status":"Success"}', true, ''],
  ['{"status":"Failure","message":"command terminated","details":{"causes":[{"reason":"ExitCode","message":"2"}]}}', false, 'exit 2'],
  ['{"status":"Failure","message":"no such container"}', false, 'no such container'],
  ['garbage', false, 'garbage'],
])('%s', (text, ok, message) => expect(outcome(text)).toEqual({ ok, message }))
