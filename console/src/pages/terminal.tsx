// A shell in a container.

import { FitAddon } from '@xterm/addon-fit'
import { Terminal as Xterm } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { RefreshCw } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useMay } from '../api/access'
import { path, PODS, type Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { bearerProtocol, frame, OUTCOME, outcome, PROTOCOL, RESIZE, STDERR, STDIN, STDOUT } from '../model/channels'
import { token } from '../session'
import { Button, Notice, Pill } from '../ui/parts'
import { documentWithSheets } from '../ui/style-host'

const SHELLS = ['sh', 'bash', 'ash', 'zsh', 'cmd']

type State = { at: 'connecting' } | { at: 'open' } | { at: 'closed'; why: string; ok: boolean }

export default function TerminalTab({ place, pod }: { place: Place; pod: KObject }) {
  const { namespace, name } = pod.metadata
  const allowed = useMay(place, { verb: 'create', resource: 'pods', subresource: 'exec', ...(namespace && { namespace }), name })
  const containers: string[] = (pod.spec?.containers ?? []).map((one: { name: string }) => one.name)
  const [container, setContainer] = useState(containers[0] ?? '')
  const [shell, setShell] = useState('sh')
  const [turn, setTurn] = useState(0)
  const [state, setState] = useState<State>({ at: 'connecting' })
  const host = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!allowed || !host.current) return
    return session(host.current, execUrl(place, pod, container, shell), setState)
  }, [allowed, container, shell, turn, place.instance, place.member, pod.metadata.uid])
  if (allowed === false) return <Notice tone="warn" title={t('terminal.refused')}>{t('remedy.forbidden')}</Notice>
  return (
    <div className="stack fill">
      <div className="bar">
        {containers.length > 1 && (
          <select className="select" aria-label={t('container')} value={container} onChange={(event) => setContainer(event.target.value)}>
            {containers.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
        <select className="select" aria-label={t('terminal.shell')} value={shell} onChange={(event) => setShell(event.target.value)}>
          {SHELLS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <StatePill state={state} />
        {state.at === 'closed' && (
          <Button onClick={() => setTurn(turn + 1)}>
            <RefreshCw size={14} aria-hidden="true" /> {t('terminal.again')}
          </Button>
        )}
      </div>
      <div className="panel term-panel" ref={host} />
    </div>
  )
}

function StatePill({ state }: { state: State }) {
  if (state.at === 'open') return <Pill tone="ok">{t('terminal.open')}</Pill>
  if (state.at === 'connecting') return <Pill tone="busy">{t('terminal.connecting')}</Pill>
  return <Pill tone={state.ok ? 'idle' : 'bad'}>{state.why || t('terminal.closed')}</Pill>
}

function execUrl(place: Place, pod: KObject, container: string, shell: string): string {
  const { namespace, name } = pod.metadata
  const exec = path(place, PODS, { namespace, name, subresource: 'exec' }, { container, stdin: true, stdout: true, tty: true, command: shell })
  return `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${exec}`
}

function session(host: HTMLElement, url: string, tell: (state: State) => void): () => void {
  const styles = documentWithSheets()
  const terminal = new Xterm({
    documentOverride: styles.document,
    cursorBlink: true,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    fontSize: 13,
    theme: { background: '#0d1519', foreground: '#dbe5ea', cursor: '#56c5e3', selectionBackground: '#2b4a57' },
    // A link in the output of a container leads nowhere by itself.
    linkHandler: { activate: () => {} },
    scrollback: 5000,
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  styles.during(() => terminal.open(host))
  const socket = new WebSocket(url, token() ? [PROTOCOL, bearerProtocol(token() ?? '')] : [PROTOCOL])
  socket.binaryType = 'arraybuffer'
  let ended: State | undefined
  const send = (channel: number, data: string) => socket.readyState === WebSocket.OPEN && socket.send(frame(channel, data))
  const resize = () => {
    fit.fit()
    send(RESIZE, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }))
  }
  tell({ at: 'connecting' })
  socket.onopen = () => {
    tell({ at: 'open' })
    resize()
    terminal.focus()
  }
  socket.onmessage = (event) => {
    const bytes = new Uint8Array(event.data as ArrayBuffer)
    const data = bytes.subarray(1)
    if (bytes[0] === STDOUT || bytes[0] === STDERR) terminal.write(data)
    if (bytes[0] === OUTCOME) {
      const result = outcome(new TextDecoder().decode(data))
      ended = { at: 'closed', why: result.message, ok: result.ok }
    }
  }
  socket.onclose = (event) => tell(ended ?? { at: 'closed', why: event.reason || t(event.wasClean ? 'terminal.closed' : 'terminal.broken'), ok: event.wasClean })
  terminal.onData((data) => send(STDIN, data))
  const watcher = new ResizeObserver(resize)
  watcher.observe(host)
  return () => {
    watcher.disconnect()
    socket.onclose = null
    socket.close()
    terminal.dispose()
    styles.dispose()
  }
}
