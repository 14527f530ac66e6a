// Who did what, and who was refused: the audit lines of the hub, as they are written.

import { History } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { ApiError, lines, open } from '../api/http'
import { withQuery } from '../api/paths'
import { t } from '../i18n'
import { type Journal, LIVE, withNew, withOlder } from '../model/journal'
import { instanceLink } from '../model/links'
import { useHere } from '../place'
import { Age, AsOf, Button, Empty, Failure, Filter, Pill, Segments } from '../ui/parts'
import { Table, type TableColumn } from '../ui/table'

export interface AuditLine {
  time: string
  user: string
  groups?: string[]
  method: string
  outcome: 'done' | 'refused' | 'failed'
  code?: number
  instance?: string
  cluster?: string
  namespace?: string
  name?: string
  resource?: string
}

interface Numbered extends AuditLine {
  /** Unlike times, no two are the same. */
  id: number
}

const AUDIT = '/manage/v1alpha1/audit'
const TONES = { done: 'ok', refused: 'bad', failed: 'warn' } as const
let last = 0

export function Audit() {
  const { place } = useHere()
  const audit = useAudit()
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState<'all' | 'refused'>('all')
  const shown = useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    const fits = (line: AuditLine) => {
      const words = [line.user, line.method, line.instance, line.cluster, line.namespace, line.name, line.resource].join(' ').toLowerCase()
      const here = place.instance === 'root' || line.instance === place.instance
      return here && (outcome === 'all' || line.outcome !== 'done') && wanted.every((word) => words.includes(word))
    }
    return audit.lines.filter(fits)
  }, [audit.lines, text, outcome, place.instance])
  const oldest = audit.lines.at(-1)
  const columns = useColumns()
  return (
    <>
      <div className="bar">
        <Filter label={t('audit.filter')} value={text} onChange={setText} />
        <Segments label={t('audit.outcome')} value={outcome} onChange={setOutcome} options={[{ value: 'all', text: t('activity.all') }, { value: 'refused', text: t('audit.refused') }]} />
        {oldest && !audit.ended && (
          <Button onClick={audit.older} disabled={audit.busy}>
            <History size={14} aria-hidden="true" /> {t('audit.older')}
          </Button>
        )}
        <span className="end row">
          {oldest && <span className="small muted">{t(audit.ended ? 'audit.all' : 'audit.since', { time: new Date(oldest.time).toLocaleString() })}</span>}
          <span className="count">{shown.length.toLocaleString('en')}</span>
          <AsOf at={audit.at} live={audit.live} />
        </span>
      </div>
      {audit.error && <Failure error={audit.error} />}
      <div className="panel fill-panel">
        <Table label={t('audit.title')} columns={columns} rows={shown} keyOf={keyOf} loading={!audit.at && !audit.error} onEnd={shown.length === audit.lines.length ? audit.older : undefined} empty={<Empty title={t('audit.none')}>{t('audit.none.detail')}</Empty>} />
      </div>
    </>
  )
}

function keyOf(line: Numbered): string {
  return String(line.id)
}

function useColumns(): TableColumn<Numbered>[] {
  return useMemo(
    () => [
      { id: 'age', title: t('age'), width: '80px', cell: (line) => <Age since={line.time} /> },
      { id: 'user', title: t('audit.user'), width: 'minmax(160px, 1fr)', by: (line) => line.user, cell: (line) => <span className="strong" title={[line.user, ...(line.groups ?? [])].join(', ')}>{line.user || '—'}</span> },
      { id: 'outcome', title: t('audit.outcome'), width: '140px', by: (line) => line.outcome, cell: (line) => <Outcome line={line} /> },
      { id: 'what', title: t('audit.what'), width: 'minmax(260px, 4fr)', by: (line) => line.method, cell: (line) => <span className="mono small" title={line.method}>{line.method}</span> },
      { id: 'where', title: t('audit.where'), width: 'minmax(110px, 0.8fr)', by: (line) => line.instance ?? '', cell: (line) => (line.instance ? <Link href={instanceLink(line.instance)}>{line.instance}</Link> : '—') },
    ],
    [],
  )
}

function Outcome({ line }: { line: AuditLine }) {
  return (
    <Pill plain tone={TONES[line.outcome] ?? 'warn'}>
      {t(`audit.outcome.${line.outcome}` as 'audit.outcome.done')}
      {line.code ? ` ${line.code}` : ''}
    </Pill>
  )
}

interface Read extends Journal<Numbered> {
  at: number
  live: boolean
  error?: ApiError
}

/** The lines, newest first: new ones keep coming, older ones come when asked for. */
function useAudit() {
  const [read, setRead] = useState<Read>({ lines: [], ended: false, room: LIVE, at: 0, live: false })
  const [busy, setBusy] = useState(false)
  const asking = useRef(false)
  const fail = useCallback((error: unknown) => setRead((before) => ({ ...before, live: false, error: ApiError.of(error) })), [])
  useEffect(() => {
    const stop = new AbortController()
    let waiting: Numbered[] = []
    let frame = 0
    // Many lines come at once at the beginning: they are shown together.
    const show = () => {
      cancelAnimationFrame(frame)
      frame = 0
      const fresh = waiting.reverse()
      waiting = []
      setRead((before) => ({ ...before, ...withNew(before, fresh), at: Date.now(), live: true }))
    }
    const follow = async () => {
      try {
        const response = await open(withQuery(AUDIT, { watch: true }), { signal: stop.signal })
        frame ||= requestAnimationFrame(show)
        for await (const line of lines(response)) {
          if (line) waiting.push(numbered(line))
          // A hidden page gets no frames.
          if (waiting.length >= LIVE) show()
          else frame ||= requestAnimationFrame(show)
        }
        setRead((before) => ({ ...before, live: false }))
      } catch (error) {
        if (!stop.signal.aborted) fail(error)
      }
    }
    void follow()
    return () => {
      stop.abort()
      cancelAnimationFrame(frame)
    }
  }, [fail])
  const before = read.ended ? undefined : read.lines.at(-1)?.time
  const older = useCallback(async () => {
    if (!before || asking.current) return
    asking.current = true
    setBusy(true)
    try {
      const page = (await (await open(withQuery(AUDIT, { before }))).text()).split('\n').filter(Boolean).map(numbered).reverse()
      setRead((now) => ({ ...now, ...withOlder(now, before, page) }))
    } catch (error) {
      fail(error)
    } finally {
      asking.current = false
      setBusy(false)
    }
  }, [before, fail])
  return { ...read, busy, older }
}

function numbered(line: string): Numbered {
  last += 1
  return { ...(JSON.parse(line) as AuditLine), id: last }
}
