// Small parts that every page is made of.

import { AlertTriangle, CheckCircle2, Info, Loader, RefreshCw, Search, XCircle } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import { useEffect, useId, useState } from 'react'
import type { ApiError } from '../api/http'
import { t } from '../i18n'
import { age } from '../model/age'
import type { Health, Tone } from '../model/health'

type ButtonProps = ComponentProps<'button'> & { look?: string }

export function Button({ look = '', className = '', type = 'button', ...rest }: ButtonProps) {
  return <button type={type} className={`button ${look} ${className}`} {...rest} />
}

/** A word with a dot: colour never says it alone. */
export function Pill({ tone, children, title, plain }: { tone: Tone; children: ReactNode; title?: string; plain?: boolean }) {
  return (
    <span className={`pill tone-${tone}${plain ? ' plain' : ''}`} title={title}>
      <span className="dot" aria-hidden="true" />
      <span className="cut">{children}</span>
    </span>
  )
}

export function HealthPill({ health, plain }: { health: Health; plain?: boolean }) {
  return (
    <Pill tone={health.tone} title={health.why} plain={plain}>
      {health.word}
    </Pill>
  )
}

export function Cut({ children, className = '', title }: { children: string; className?: string; title?: string }) {
  return (
    <span className={`cut ${className}`} title={title ?? children}>
      {children}
    </span>
  )
}

export function Tag({ children, title }: { children: string; title?: string }) {
  return (
    <span className="tag" title={title ?? children}>
      <span>{children}</span>
    </span>
  )
}

export function Labels({ labels, most = 99 }: { labels?: Record<string, string>; most?: number }) {
  const pairs = Object.entries(labels ?? {})
  if (pairs.length === 0) return <span className="faint">—</span>
  return (
    <span className="row wrap gap-4">
      {pairs.slice(0, most).map(([key, value]) => (
        <Tag key={key}>{value ? `${key}=${value}` : key}</Tag>
      ))}
      {pairs.length > most && <span className="count">+{pairs.length - most}</span>}
    </span>
  )
}

export function Meter({ used, total, label, format }: { used: number; total: number; label: string; format: (value: number) => string }) {
  const part = total > 0 ? Math.min(1, used / total) : 0
  const level = part > 0.95 ? ' full' : part > 0.8 ? ' high' : ''
  const percent = Math.round(part * 100)
  return (
    <div className="meter">
      <div className="figures">
        <span>{label}</span>
        <span>
          {total > 0 ? (
            <>
              <span className="strong">{format(used)}</span> / {format(total)}
            </>
          ) : (
            '—'
          )}
        </span>
      </div>
      <div className="track" role="meter" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
        <Width className={`fill${level}`} part={part} />
      </div>
    </div>
  )
}

/** A box as wide as its part of the whole. */
export function Width({ part, className, title }: { part: number; className: string; title?: string }) {
  return <div className={className} title={title} style={{ width: `${(part * 100).toFixed(1)}%` }} />
}

export function Notice({ tone, title, children, action }: { tone: Tone; title: ReactNode; children?: ReactNode; action?: ReactNode }) {
  const Icon = tone === 'ok' ? CheckCircle2 : tone === 'bad' ? XCircle : tone === 'warn' ? AlertTriangle : tone === 'busy' ? Loader : Info
  return (
    <div className={`notice tone-${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon size={18} aria-hidden="true" />
      <div className="grow stack tight">
        <div className="title">{title}</div>
        {children && <div className="detail">{children}</div>}
      </div>
      {action}
    </div>
  )
}

/** What went wrong and what to do about it. */
export function Failure({ error, again }: { error: ApiError; again?: () => void }) {
  return (
    <Notice
      tone="bad"
      title={headline(error)}
      action={
        again && (
          <Button look="small" onClick={again}>
            <RefreshCw size={13} aria-hidden="true" /> {t('again')}
          </Button>
        )
      }
    >
      <div>{error.message}</div>
      {error.status?.details?.causes?.map((cause, index) => (
        <div key={index}>
          {cause.field && <code>{cause.field}</code>} {cause.message}
        </div>
      ))}
      <div>{remedy(error)}</div>
    </Notice>
  )
}

function headline(error: ApiError): string {
  if (error.code === 0) return t('error.unreachable')
  if (error.code === 403 || error.code === 401) return t('error.forbidden')
  if (error.code === 404) return t('error.missing')
  if (error.code === 409) return t('error.conflict')
  if (error.code === 422 || error.code === 400) return t('error.invalid')
  return t('error.other', { code: error.code })
}

export function remedy(error: ApiError): string {
  if (error.code === 0) return t('remedy.unreachable')
  if (error.code === 403 || error.code === 401) return t('remedy.forbidden')
  if (error.code === 404) return t('remedy.missing')
  if (error.code === 409) return t('remedy.conflict')
  if (error.code === 422 || error.code === 400) return t('remedy.invalid')
  if (error.code === 429 || error.code >= 500) return t('remedy.busy')
  return ''
}

export function Empty({ icon, title, children, action }: { icon?: ReactNode; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      {icon}
      <div className="title">{title}</div>
      {children && <p>{children}</p>}
      {action}
    </div>
  )
}

/** Shown instead of a spinner while the first answer is on its way. */
export function Bones({ lines = 3 }: { lines?: number }) {
  return (
    <div className="stack" aria-busy="true" aria-label={t('loading')} role="status">
      {Array.from({ length: lines }, (_, line) => (
        <Bone key={line} width={92 - ((line * 17) % 45)} />
      ))}
    </div>
  )
}

export function Bone({ width }: { width: number }) {
  return <span className="bone" style={{ width: `${width}%` }} />
}

let now = Date.now()
const ticking = new Set<(now: number) => void>()
setInterval(() => {
  now = Date.now()
  for (const tick of ticking) tick(now)
}, 1000)

/** The time, renewed each second while it is shown. */
export function useNow(): number {
  const [value, setValue] = useState(now)
  useEffect(() => {
    ticking.add(setValue)
    return () => {
      ticking.delete(setValue)
    }
  }, [])
  return value
}

export function Age({ since }: { since?: string }) {
  return (
    <time dateTime={since} title={since ? new Date(since).toLocaleString() : undefined} className="num">
      {age(since, useNow())}
    </time>
  )
}

/** How old the numbers are, and whether changes come by themselves. */
export function AsOf({ at, live }: { at: number; live: boolean }) {
  const current = useNow()
  if (!at) return null
  const seconds = Math.max(0, Math.round((current - at) / 1000))
  // Between the answer and the watch there is a moment that is nobody's business.
  const fresh = live || seconds < 4
  return (
    <span className={`asof tone-${fresh ? 'ok' : 'warn'}`} title={new Date(at).toLocaleString()}>
      <span className="dot" aria-hidden="true" />
      {fresh ? t('live') : t('asof', { n: seconds })}
    </span>
  )
}

export function Panel({ title, tools, children, flush, className = '' }: { title?: ReactNode; tools?: ReactNode; children: ReactNode; flush?: boolean; className?: string }) {
  return (
    <section className={`panel ${className}`}>
      {title && (
        <header>
          <h2 className="row">{title}</h2>
          <span className="end row">{tools}</span>
        </header>
      )}
      <div className={`body${flush ? ' flush' : ''}`}>{children}</div>
    </section>
  )
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: (id: string) => ReactNode }) {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint && <span className="hint">{hint}</span>}
    </div>
  )
}

export function Segments<T extends string>({ value, options, onChange, label }: { value: T; options: { value: T; text: ReactNode }[]; onChange: (value: T) => void; label: string }) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  )
}

/** Where one writes what is looked for; `/` leads here. */
export function Filter({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <div className="search">
      <Search size={14} aria-hidden="true" />
      <input className="input" data-filter placeholder={label} aria-label={label} value={value} onChange={(event) => onChange(event.target.value)} />
    </div>
  )
}
