// The built console in front of a running hub, with the hub's own headers, so that a change to the
// console needs no new hub: npm run build && ATOLL_URL=https://… node e2e/preview.mjs 7444

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const DIST = new URL('../dist/', import.meta.url).pathname
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
const KEPT = ['content-security-policy', 'x-content-type-options', 'x-frame-options', 'referrer-policy']
const agent = new https.Agent({ rejectUnauthorized: false, keepAlive: true })

/** Serves the console at a port (0: a free one); everything else is passed on to the hub. */
export async function serveConsole(hubUrl, port) {
  const hub = new URL(hubUrl)
  const kept = await headersOf(hub)
  const server = http2.createSecureServer({ ...certificate(), allowHTTP1: true })
  server.on('request', (request, response) => {
    const path = request.url.split('?')[0]
    if (path.startsWith('/console')) return serve(path.slice('/console/'.length), request, response, kept)
    pass(hub, request, response)
  })
  server.on('upgrade', (request, socket, head) => splice(hub, request, socket, head))
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { url: `https://127.0.0.1:${server.address().port}`, close: () => server.close() }
}

function certificate() {
  const directory = mkdtempSync(join(tmpdir(), 'preview-'))
  const at = (name) => join(directory, name)
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', '/CN=localhost', '-keyout', at('key'), '-out', at('cert')], { stdio: 'ignore' })
  const pair = { key: readFileSync(at('key')), cert: readFileSync(at('cert')) }
  rmSync(directory, { recursive: true, force: true })
  return pair
}

function headersOf(hub) {
  return new Promise((resolve, reject) => {
    const asked = https.get(new URL('/console/', hub), { agent }, (answer) => {
      answer.resume()
      resolve(Object.fromEntries(KEPT.map((name) => [name, answer.headers[name] ?? ''])))
    })
    asked.once('error', reject)
  })
}

function serve(name, request, response, kept) {
  const wanted = join(DIST, name)
  const file = name && wanted.startsWith(DIST) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(DIST, 'index.html')
  const packed = /\bbr\b/.test(request.headers['accept-encoding'] ?? '') && existsSync(`${file}.br`)
  response.writeHead(200, { ...kept, 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', ...(packed && { 'content-encoding': 'br' }) })
  response.end(readFileSync(packed ? `${file}.br` : file))
}

function pass(hub, request, response) {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(':')))
  const onward = https.request(new URL(request.url, hub), { agent, method: request.method, headers: { ...headers, host: hub.host } }, (answer) => {
    const { connection, 'transfer-encoding': _, 'keep-alive': __, ...rest } = answer.headers
    response.writeHead(answer.statusCode, rest)
    answer.pipe(response)
    response.on('close', () => answer.destroy())
  })
  onward.on('error', () => response.destroyed || response.destroy())
  request.pipe(onward)
}

/** Joins both ends of a WebSocket. */
function splice(hub, request, socket, head) {
  const onward = https.request(new URL(request.url, hub), { agent: false, rejectUnauthorized: false, method: 'GET', headers: { ...request.headers, host: hub.host } })
  onward.on('upgrade', (answer, far, farHead) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`)
    far.write(head)
    socket.write(farHead)
    far.pipe(socket).pipe(far)
    far.on('error', () => socket.destroy())
    socket.on('error', () => far.destroy())
  })
  onward.on('response', () => socket.destroy())
  onward.on('error', () => socket.destroy())
  onward.end()
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const hub = process.env.ATOLL_URL ?? 'https://127.0.0.1:7443'
  const preview = await serveConsole(hub, Number(process.argv[2] ?? 7444))
  console.log(`${preview.url}/console/ in front of ${hub}`)
}
