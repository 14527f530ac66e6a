// The built console in front of a running hub, with the hub's own headers, so that a change to the
// console needs no new hub: npm run build && ATOLL_URL=https://… node e2e/preview.mjs 7444

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'

const hub = new URL(process.env.ATOLL_URL ?? 'https://127.0.0.1:7443')
const port = Number(process.argv[2] ?? 7444)
const dist = new URL('../dist/', import.meta.url).pathname
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
const agent = new https.Agent({ rejectUnauthorized: false, keepAlive: true })

const directory = mkdtempSync(join(tmpdir(), 'preview-'))
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', '/CN=localhost', '-keyout', join(directory, 'key'), '-out', join(directory, 'cert')], { stdio: 'ignore' })

let kept = {}
https.get(new URL('/console/', hub), { agent }, (answer) => {
  for (const name of ['content-security-policy', 'x-content-type-options', 'x-frame-options', 'referrer-policy']) kept[name] = answer.headers[name] ?? ''
  if (process.env.POLICY) kept['content-security-policy'] = process.env.POLICY
  answer.resume()
})

const server = http2.createSecureServer({ key: readFileSync(join(directory, 'key')), cert: readFileSync(join(directory, 'cert')), allowHTTP1: true })
server.on('request', (request, response) => {
  const path = request.url.split('?')[0]
  if (path.startsWith('/console')) return serve(path.slice('/console/'.length), response)
  pass(request, response)
})
server.on('upgrade', (request, socket, head) => {
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
})

function serve(name, response) {
  const wanted = join(dist, name)
  const file = name && wanted.startsWith(dist) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(dist, 'index.html')
  response.writeHead(200, { ...kept, 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' })
  response.end(readFileSync(file))
}

function pass(request, response) {
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

server.listen(port, '127.0.0.1', () => console.log(`https://127.0.0.1:${port}/console/ in front of ${hub.origin}`))
