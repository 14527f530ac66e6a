// Who did what, and who was refused: the audit lines of the hub, as they are written.

import { Search } from 'lucide-react'
import { useEffect, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { ApiError, lines, open } from '../api/http'
import { t } from '../i18n'
import { instanceLink } from '../model/links'
import { Age, AsOf, Bones, Empty, Failure, Pill, Segments } from '../ui/parts'

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

const MOST = 2000
const SHOWN = 300
const AUDIT = '/manage/v1alpha1/audit?watch=true'

export function Audit() {
  const audit = useAudit()
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState<'all' | 'refused'>('all')
  const shown = useMemo(() => {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean)
    const fits = (line: AuditLine) => {
      const words = [line.user, line.method, line.instance, line.cluster, line.namespace, line.name, line.resource].join(' ').toLowerCase()
      return (outcome === 'all' || line.outcome !== 'done') && wanted.every((word) => words.includes(word))
    }
    return audit.lines.filter(fits)
  }, [audit.lines, text, outcome])
  return (
    <>
      <div className="bar">
        <div className="search" style={{ width: 280 }}>
          <Search size={14} aria-hidden="true" />
          <input className="input" data-filter placeholder={t('audit.filter')} aria-label={t('audit.filter')} value={text} onChange={(event) => setText(event.target.value)} />
        </div>
        <Segments label={t('audit.outcome')} value={outcome} onChange={setOutcome} options={[{ value: 'all', text: t('activity.all') }, { value: 'refused', text: t('audit.refused') }]} />
        <span className="end row">
          <span className="count">{shown.length}</span>
          <AsOf at={audit.at} live={audit.live} />
        </span>
      </div>
      {audit.error && <Failure error={audit.error} />}
      <section className="panel">{!audit.at && !audit.error ? <div className="pad"><Bones lines={6} /></div> : <Lines list={shown} />}</section>
    </>
  )
}

function Lines({ list }: { list: AuditLine[] }) {
  if (list.length === 0) return <Empty title={t('audit.none')}>{t('audit.none.detail')}</Empty>
  return (
    <div className="scroll-x">
      <table className="plain-table">
        <thead>
          <tr>
            <th>{t('age')}</th>
            <th>{t('audit.user')}</th>
            <th>{t('audit.outcome')}</th>
            <th>{t('audit.what')}</th>
            <th>{t('audit.where')}</th>
          </tr>
        </thead>
        <tbody>
          {list.slice(0, SHOWN).map((line, index) => (
            <tr key={`${line.time}${line.user}${line.method}${index}`}>
              <td>
                <Age since={line.time} />
              </td>
              <td className="breaks strong" title={(line.groups ?? []).join(', ')}>
                {line.user || '—'}
              </td>
              <td>
                <Pill plain tone={line.outcome === 'done' ? 'ok' : line.outcome === 'refused' ? 'bad' : 'warn'}>
                  {t(`audit.outcome.${line.outcome}` as 'audit.outcome.done')}
                  {line.code ? ` ${line.code}` : ''}
                </Pill>
              </td>
              <td className="breaks mono small">{line.method}</td>
              <td className="breaks">{line.instance ? <Link href={instanceLink(line.instance)}>{line.instance}</Link> : '—'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > SHOWN && <p className="pad small muted">{t('audit.more', { n: list.length - SHOWN })}</p>}
    </div>
  )
}

interface Read {
  lines: AuditLine[]
  at: number
  live: boolean
  error?: ApiError
}

/** The lines, newest first; they keep coming. */
function useAudit(): Read {
  const [read, setRead] = useState<Read>({ lines: [], at: 0, live: false })
  useEffect(() => {
    const stop = new AbortController()
    let waiting: AuditLine[] = []
    let frame = 0
    // Many lines come at once at the beginning: they are shown together.
    const show = () => {
      frame = 0
      const fresh = waiting.reverse()
      waiting = []
      setRead((before) => ({ lines: [...fresh, ...before.lines].slice(0, MOST), at: Date.now(), live: true }))
    }
    const follow = async () => {
      try {
        const response = await open(AUDIT, { signal: stop.signal })
        frame ||= requestAnimationFrame(show)
        for await (const line of lines(response)) {
          if (line) waiting.push(JSON.parse(line) as AuditLine)
          frame ||= requestAnimationFrame(show)
        }
        setRead((before) => ({ ...before, live: false }))
      } catch (error) {
        if (!stop.signal.aborted) setRead((before) => ({ ...before, live: false, error: error instanceof ApiError ? error : new ApiError(0, '', String(error)) }))
      }
    }
    void follow()
    return () => {
      stop.abort()
      cancelAnimationFrame(frame)
    }
  }, [])
  return read
}
