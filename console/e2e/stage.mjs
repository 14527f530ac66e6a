// The hub and the browser of a suite: there before its first test, gone after its last.

import { after, before } from 'node:test'
import { launch } from './browser.mjs'
import { openHub } from './hub.mjs'

/** Where the pages of the hub's own instance begin. */
export const OF_HUB = '/i/root'

export let hub
export let browser

before(async () => {
  hub = await openHub()
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await hub?.close()
})
