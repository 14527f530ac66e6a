// One demo behind one preview of the built console, for all suites that are named.

import { spawn } from 'node:child_process'
import { openHub } from './hub.mjs'
import { serveConsole } from './preview.mjs'

const suites = process.argv.slice(2)
const hub = await openHub()
const preview = await serveConsole(hub.url, 0)
let failed = 0
try {
  for (const suite of suites) {
    const env = { ...process.env, ATOLL_URL: preview.url, ATOLL_HUB_URL: hub.url, ATOLL_TOKEN: hub.token }
    const code = await new Promise((resolve) => spawn(process.execPath, ['--test', '--test-reporter=spec', new URL(`./${suite}.test.mjs`, import.meta.url).pathname], { stdio: 'inherit', env }).once('exit', resolve))
    if (code !== 0) failed += 1
  }
} finally {
  preview.close()
  await hub.close()
}
process.exit(failed)
