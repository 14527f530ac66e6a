// Logs of one pod or many, merged as they come.

import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDownToLine, Download, Pause, Play, WrapText } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { ApiError, lines, open } from '../api/http'
import { path, PODS, type Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { plainText, splitTime } from '../model/ansi'
import { Button, Filter, Notice } from '../ui/parts'

export interface LogSource {
  place: Place
  pod: KObject
}

interface Line {
  id: number
  source: number
  time: string
  text: string
}

const MOST_LINES = 20_000
const MOST_PODS = 30
const COLOURS = 8

export default function Logs({ sources }: { sources: LogSource[] }) {
  const [container, setContainer] = useState('')
  const [previous, setPrevious] = useState(false)
  const [text, setText] = useState('')
  const [wrap, setWrap] = useState(true)
  const [times, setTimes] = useState(false)
  const [paused, setPaused] = useState(false)
  const shown = sources.slice(0, MOST_PODS)
  const containers = useMemo(() => [...new Set(shown.flatMap(({ pod }) => namesOf(pod)))], [shown.map(({ pod }) => pod.metadata.uid).join()])
  const { all, errors } = useLines(shown, container, previous, paused)
  const wanted = text.toLowerCase()
  const kept = useMemo(() => (wanted ? all.filter((line) => line.text.toLowerCase().includes(wanted)) : all), [all, wanted])
  const save = () => {
    const blob = new Blob([kept.map((line) => `${nameOf(shown[line.source])}\t${line.time}\t${line.text}\n`).join('')], { type: 'text/plain' })
    const link = document.createElement('a')
    link.href = URL.createObjectURL(blob)
    link.download = `${nameOf(shown[0])}.log`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  }
  return (
    <div className="stack fill">
      <div className="bar">
        <Filter label={t('logs.filter')} value={text} onChange={setText} />
        {containers.length > 1 && (
          <select className="select" aria-label={t('container')} value={container} onChange={(event) => setContainer(event.target.value)}>
            <option value="">{t('container.all')}</option>
            {containers.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <Button aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? <Play size={14} aria-hidden="true" /> : <Pause size={14} aria-hidden="true" />} {paused ? t('resume') : t('pause')}
        </Button>
        <Button look="icon" aria-pressed={wrap} aria-label={t('logs.wrap')} title={t('logs.wrap')} onClick={() => setWrap(!wrap)}>
          <WrapText size={15} aria-hidden="true" />
        </Button>
        <label className="check">
          <input type="checkbox" checked={times} onChange={(event) => setTimes(event.target.checked)} /> {t('logs.times')}
        </label>
        <label className="check">
          <input type="checkbox" checked={previous} onChange={(event) => setPrevious(event.target.checked)} /> {t('logs.previous')}
        </label>
        <span className="end row">
          <span className="tiny faint num">{t('logs.count', { n: kept.length })}</span>
          <Button look="icon" aria-label={t('download')} title={t('download')} onClick={save}>
            <Download size={15} aria-hidden="true" />
          </Button>
        </span>
      </div>
      {sources.length > MOST_PODS && <Notice tone="idle" title={t('logs.many', { shown: MOST_PODS, n: sources.length })} />}
      {errors.map((error) => (
        <Notice key={error} tone="warn" title={error} />
      ))}
      <LogView lines={kept} sources={shown} wrap={wrap} times={times} />
    </div>
  )
}

function namesOf(pod: KObject): string[] {
  return [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map((one: { name: string }) => one.name)
}

function nameOf(source: LogSource | undefined): string {
  return source ? (source.place.member ? `${source.place.member}/${source.pod.metadata.name}` : source.pod.metadata.name) : ''
}

function useLines(sources: LogSource[], container: string, previous: boolean, paused: boolean): { all: Line[]; errors: string[] } {
  const [all, setAll] = useState<Line[]>([])
  const [errors, setErrors] = useState<string[]>([])
  const held = useRef(paused)
  held.current = paused
  const key = sources.map(({ place, pod }) => `${place.member}/${pod.metadata.uid}`).join()
  useEffect(() => {
    const stop = new AbortController()
    let waiting: Line[] = []
    let count = 0
    setAll([])
    setErrors([])
    const flush = setInterval(() => {
      if (waiting.length === 0 || held.current) return
      // What several pods said before we came arrives pod by pod; times put it in order.
      const fresh = sources.length > 1 ? waiting.sort((a, b) => a.time.localeCompare(b.time)) : waiting
      waiting = []
      setAll((before) => [...before, ...fresh].slice(-MOST_LINES))
    }, 120)
    const take = (source: number, line: string) => {
      count += 1
      const { time, text } = splitTime(line)
      waiting.push({ id: count, source, time, text: plainText(text) })
      if (waiting.length > MOST_LINES) waiting = waiting.slice(-MOST_LINES)
    }
    sources.forEach((source, index) => {
      for (const name of namesOf(source.pod).filter((one) => !container || one === container)) {
        follow(source, name, previous, stop.signal, (line) => take(index, line)).catch((error) => {
          if (!stop.signal.aborted) setErrors((before) => [...before, `${nameOf(source)} ${name}: ${error instanceof ApiError ? error.message : String(error)}`].slice(-5))
        })
      }
    })
    return () => {
      stop.abort()
      clearInterval(flush)
    }
  }, [key, container, previous])
  return { all, errors }
}

async function follow(source: LogSource, container: string, previous: boolean, signal: AbortSignal, take: (line: string) => void): Promise<void> {
  const { name, namespace } = source.pod.metadata
  const url = path(source.place, PODS, { namespace, name, subresource: 'log' }, { container, follow: previous ? undefined : true, previous: previous || undefined, tailLines: 500, timestamps: true })
  const response = await open(url, { signal, accept: '*/*' })
  for await (const line of lines(response)) take(line)
}

function LogView({ lines: shown, sources, wrap, times }: { lines: Line[]; sources: LogSource[]; wrap: boolean; times: boolean }) {
  const scroll = useRef<HTMLDivElement>(null)
  const [following, setFollowing] = useState(true)
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => scroll.current, estimateSize: () => 20, overscan: 30, useFlushSync: false })
  useEffect(() => {
    if (following && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: 'end' })
  }, [shown.length, following])
  const many = sources.length > 1
  return (
    <div className="panel log-panel">
      <div
        className={`log${wrap ? ' wrap' : ''}`}
        ref={scroll}
        role="log"
        aria-label={t('tab.logs')}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard
        tabIndex={0}
        onWheel={(event) => event.deltaY < 0 && setFollowing(false)}
        onKeyDown={(event) => ['ArrowUp', 'PageUp', 'Home'].includes(event.key) && setFollowing(false)}
      >
        {shown.length === 0 ? (
          <div className="faint pad small">{t('logs.none')}</div>
        ) : (
          <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
            {virtual.getVirtualItems().map((item) => {
              const line = shown[item.index] as Line
              return (
                <div key={line.id} data-index={item.index} ref={virtual.measureElement} className="log-line" style={{ transform: `translateY(${item.start}px)` }}>
                  {times && <span className="faint">{line.time.slice(11, 23)} </span>}
                  {many && <span className={`source colour-${line.source % COLOURS}`}>{nameOf(sources[line.source])} </span>}
                  {line.text}
                </div>
              )
            })}
          </div>
        )}
      </div>
      {!following && (
        <Button look="primary small" className="to-end" onClick={() => setFollowing(true)}>
          <ArrowDownToLine size={13} aria-hidden="true" /> {t('logs.follow')}
        </Button>
      )}
    </div>
  )
}
