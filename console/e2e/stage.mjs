// The hub and the browser of a suite: there before its first test, gone after its last.

import { after } from 'node:test'
import { launch } from './browser.mjs'
import { openHub } from './hub.mjs'

/** Where the pages of the hub's own instance begin. */
export const OF_HUB = '/i/root'

// Not in a hook: hooks of a file run at the same time as those of the files it imports.
export const hub = await openHub()
export const browser = await launch()

after(async () => {
  await browser.close()
  await hub.close()
})
