// A running hub: the one named by ATOLL_URL, or a demo started for these tests.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// The demo signs its own certificate; these tests are about the console.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
process.removeAllListeners('warning')

export async function openHub() {
  if (process.env.ATOLL_URL) {
    const token = process.env.ATOLL_TOKEN ?? readFileSync(join(process.env.ATOLL_DATA_DIR ?? 'atoll-data', 'admin.token'), 'utf8').trim()
    return { url: process.env.ATOLL_URL.replace(/\/$/, ''), token, close: async () => {} }
  }
  const directory = mkdtempSync(join(tmpdir(), 'atoll-e2e-'))
  const port = await freePort()
  const child = spawn(binary(), ['up', '--demo', '--data-dir', directory, '--listen', `127.0.0.1:${port}`], { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ATOLL_METRICS_LISTEN: 'off', ATOLL_HEALTH_LISTEN: 'off' } })
  let said = ''
  child.stderr.on('data', (data) => {
    said += data
  })
  const url = `https://127.0.0.1:${port}`
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the hub ended: ${said}`)
    return (await fetch(`${url}/readyz`)).ok
  }, 30_000)
  const token = readFileSync(join(directory, 'admin.token'), 'utf8').trim()
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  }
  return { url, token, directory, close }
}

/** The program under test: $ATOLL, or whatever was built last. */
function binary() {
  if (process.env.ATOLL) return process.env.ATOLL
  const built = ['release', 'debug'].map((kind) => new URL(`../../target/${kind}/atoll`, import.meta.url).pathname).filter(existsSync)
  const [newest] = built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  if (!newest) throw new Error('no hub: set ATOLL to the program, or build atoll first')
  return newest
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Waits until something holds; what it last failed with is told when time is up. */
export async function until(holds, milliseconds = 15_000) {
  const end = Date.now() + milliseconds
  let last
  while (Date.now() < end) {
    try {
      if (await holds()) return
      last = undefined
    } catch (error) {
      if (/the hub ended/.test(error.message)) throw error
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw last ?? new Error('it did not come about in time')
}

/** One request to the hub as the administrator. */
export async function ask(hub, path, { method = 'GET', body, type = 'application/json', may404 = false } = {}) {
  const response = await fetch(hub.url + path, { method, headers: { authorization: `Bearer ${hub.token}`, 'content-type': type }, body: body === undefined ? undefined : JSON.stringify(body) })
  const answer = await response.json().catch(() => ({}))
  if (response.ok || (may404 && response.status === 404)) return answer
  if (response.status === 409 && method === 'POST') return answer
  throw new Error(`${method} ${path}: ${response.status} ${answer.message}`)
}

/** Gives a local account its password, as the command line does: the hub never takes one over the API. */
export async function setPassword(hub, name, password) {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-e2e-'))
  const config = join(directory, 'kubeconfig')
  const server = { server: process.env.ATOLL_HUB_URL ?? hub.url, 'insecure-skip-tls-verify': true }
  writeFileSync(config, JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'root', clusters: [{ name: 'root', cluster: server }], users: [{ name: 'root', user: { token: hub.token } }], contexts: [{ name: 'root', context: { cluster: 'root', user: 'root' } }] }))
  const ran = spawnSync(binary(), ['account', 'set-password', name, '--kubeconfig', config], { input: `${password}\n`, encoding: 'utf8' })
  rmSync(directory, { recursive: true, force: true })
  if (ran.status !== 0) throw new Error(`set-password: ${ran.stderr}`)
}

export function deployment(name, replicas, more = {}) {
  return {
    apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default', labels: { app: name }, ...more.metadata },
    spec: {
      replicas, selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name }, annotations: more.pod }, spec: { containers: [{ name: 'main', image: more.image ?? 'nginx:1.29', resources: { requests: { cpu: '100m', memory: '64Mi' } } }] } },
    },
  }
}
