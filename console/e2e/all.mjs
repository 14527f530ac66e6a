// One demo for all suites that are named: the console inside the program, or a preview of the one built here. A suite
// that fails is run once more with a demo of its own; passing then, it is named as unsteady.

import { spawn, spawnSync } from 'node:child_process'
import { openHub } from './hub.mjs'
import { serveConsole } from './preview.mjs'

const suites = process.argv.slice(2)
const started = Date.now()
/** All of it together takes no longer, whatever hangs. */
const LIMIT = 15 * 60_000
const left = () => Math.max(1000, started + LIMIT - Date.now())
let built = false

/** A demo and the address of its console. */
async function stage() {
  const hub = await openHub()
  const page = await (await fetch(`${hub.url}/console/`)).text()
  const embedded = process.env.ATOLL_E2E_EMBEDDED === '1' && /<script[^>]+src=/.test(page)
  if (!embedded) build()
  const preview = embedded ? null : await serveConsole(hub.url, 0)
  console.log(`── the console ${embedded ? 'inside the program' : 'as built here'}, at ${preview?.url ?? hub.url}`)
  const env = { ...process.env, ATOLL_URL: preview?.url ?? hub.url, ATOLL_HUB_URL: hub.url, ATOLL_TOKEN: hub.token, ATOLL_DATA_DIR: hub.directory }
  const close = async () => {
    preview?.close()
    await hub.close()
  }
  return { env, close }
}

async function run(suite, env) {
  const file = new URL(`./${suite}.test.mjs`, import.meta.url).pathname
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', `--test-timeout=${left()}`, file], { stdio: 'inherit', env })
  return (await new Promise((resolve) => child.once('exit', resolve))) === 0
}

async function on(list) {
  const { env, close } = await stage()
  const failed = []
  try {
    for (const suite of list) if (!(await run(suite, env))) failed.push(suite)
  } finally {
    await close()
  }
  return failed
}

function build() {
  if (process.env.ATOLL_E2E_BUILT || built) return
  built = true
  const made = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit', cwd: new URL('..', import.meta.url).pathname })
  if (made.status !== 0) process.exit(1)
}

const failed = await on(suites)
// Without time to try again, once is enough.
const again = failed.length === 0 ? [] : left() > 180_000 ? await on(failed) : failed
const seconds = Math.round((Date.now() - started) / 1000)
console.log(`── browser tests: ${suites.length - again.length} of ${suites.length} suites passed in ${seconds} s`)
for (const suite of failed) console.log(again.includes(suite) ? `FAILED: console/e2e ${suite}` : `UNSTEADY (failed, passed when tried again): console/e2e ${suite}`)
process.exit(again.length)
