// A line over time, small enough to stand in a panel.

import { useId } from 'react'
import { t } from '../i18n'

interface Point {
  at: number
  value: number
}

const WIDE = 600
const HIGH = 96

export function Chart({ label, points, format, most }: { label: string; points: Point[]; format: (value: number) => string; most?: number }) {
  const id = useId()
  const last = points[points.length - 1]
  const first = points[0]
  if (!last || !first) return null
  const highest = Math.max(...points.map((point) => point.value), 1e-9) * 1.15
  const top = most && most < highest * 3 ? Math.max(most, highest) : highest
  const from = first.at
  const span = Math.max(last.at - from, 30_000)
  const x = (point: Point) => ((point.at - from) / span) * WIDE
  const y = (point: Point) => HIGH - (point.value / top) * HIGH
  const line = points.map((point, index) => `${index ? 'L' : 'M'}${x(point).toFixed(1)} ${y(point).toFixed(1)}`).join('')
  const minutes = Math.max(1, Math.round((last.at - from) / 60_000))
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption id={id} className="row small">
        <span className="muted">{label}</span>
        <span className="strong num">{format(last.value)}</span>
        {most !== undefined && most > 0 && <span className="faint num">/ {format(most)}</span>}
        <span className="end tiny faint num">{t('chart.span', { n: minutes, top: format(top) })}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={t('chart.says', { label, now: format(last.value), high: format(Math.max(...points.map((point) => point.value))) })}>
        {[0.25, 0.5, 0.75].map((part) => (
          <line key={part} className="grid-line" x1="0" x2={WIDE} y1={HIGH * part} y2={HIGH * part} />
        ))}
        {points.length > 1 && <path className="area" d={`${line}L${x(last).toFixed(1)} ${HIGH}L0 ${HIGH}Z`} />}
        {points.length > 1 ? <path className="line" d={line} /> : <circle className="only" cx={3} cy={y(last)} r={3} />}
      </svg>
    </figure>
  )
}
