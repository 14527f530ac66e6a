// A table that only draws the rows in view.

import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type KeyboardEvent, memo, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { t } from '../i18n'
import { Bone } from './parts'

export interface TableColumn<Row> {
  id: string
  title: string
  hint?: string
  /** A track of a CSS grid. */
  width: string
  right?: boolean
  cell: (row: Row) => ReactNode
  /** What the column is sorted by; without it the column cannot be sorted. */
  by?: (row: Row) => string | number
}

interface Props<Row> {
  label: string
  columns: TableColumn<Row>[]
  rows: Row[]
  keyOf: (row: Row) => string
  loading?: boolean
  /** How many there are in all, loaded or not. */
  total?: number
  onEnd?: () => void
  /** Called when a sort order is chosen, which needs all rows. */
  onSort?: () => void
  empty?: ReactNode
}

const ROW = 38

export function Table<Row>({ label, columns, rows, keyOf, loading, total, onEnd, onSort, empty }: Props<Row>) {
  const scroll = useRef<HTMLDivElement>(null)
  const [order, setOrder] = useState<{ id: string; down: boolean } | null>(null)
  const sorted = useMemo(() => inOrder(rows, columns, order), [rows, columns, order])
  const virtual = useVirtualizer({ count: sorted.length, getScrollElement: () => scroll.current, estimateSize: () => ROW, overscan: 8, useFlushSync: false })
  const drawn = virtual.getVirtualItems()
  const lastDrawn = drawn[drawn.length - 1]?.index ?? 0
  useEffect(() => {
    if (onEnd && lastDrawn >= sorted.length - 120) onEnd()
  }, [lastDrawn, sorted.length, onEnd])
  const tracks = { gridTemplateColumns: columns.map((column) => column.width).join(' ') }
  const narrowest = columns.reduce((sum, column) => sum + Number(/\d+/.exec(column.width)?.[0] ?? 0), 0)
  const choose = (id: string) => {
    onSort?.()
    setOrder((before) => (before?.id !== id ? { id, down: false } : before.down ? null : { id, down: true }))
  }
  return (
    <div className="table grow" role="table" aria-label={label} aria-rowcount={total ?? sorted.length} aria-busy={loading}>
      <div className="scroll" ref={scroll} onKeyDown={moveFocus}>
        <div className="inner" style={{ minWidth: narrowest }}>
          <div className="head" role="row" style={tracks}>
            {columns.map((column) => (
              <div key={column.id} role="columnheader" className={column.right ? 'right cut' : 'cut'} title={column.hint} aria-sort={order?.id === column.id ? (order.down ? 'descending' : 'ascending') : undefined}>
                {column.by ? (
                  <button type="button" onClick={() => choose(column.id)}>
                    <span className="cut">{column.title}</span>
                    {order?.id === column.id && (order.down ? <ArrowDown size={12} aria-hidden="true" /> : <ArrowUp size={12} aria-hidden="true" />)}
                  </button>
                ) : (
                  column.title
                )}
              </div>
            ))}
          </div>
          {loading && sorted.length === 0 ? (
            <Ghosts tracks={tracks} columns={columns.length} />
          ) : sorted.length === 0 ? (
            <div role="row">
              <div role="cell">{empty ?? <div className="empty">{t('table.empty')}</div>}</div>
            </div>
          ) : (
            <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
              {drawn.map((item) => {
                const row = sorted[item.index] as Row
                return <Line key={keyOf(row)} row={row} columns={columns as TableColumn<unknown>[]} tracks={tracks.gridTemplateColumns} index={item.index} start={item.start} />
              })}
            </div>
          )}
        </div>
      </div>
    </div>
  )
}

/** One row. While the table scrolls most rows stay as they are, and are not drawn again. */
const Line = memo(function Line({ row, columns, tracks, index, start }: { row: unknown; columns: TableColumn<unknown>[]; tracks: string; index: number; start: number }) {
  return (
    <div className="line" role="row" aria-rowindex={index + 2} style={{ gridTemplateColumns: tracks, transform: `translateY(${start}px)` }}>
      {columns.map((column) => (
        <div key={column.id} role="cell" className={column.right ? 'right num' : undefined}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  )
})

function Ghosts({ tracks, columns }: { tracks: { gridTemplateColumns: string }; columns: number }) {
  return (
    <div role="row">
      <div role="cell" aria-label={t('loading')} style={{ position: 'relative', height: 12 * ROW }}>
        {Array.from({ length: 12 }, (_, line) => (
          <div key={line} className="line" style={{ ...tracks, transform: `translateY(${line * ROW}px)` }}>
            {Array.from({ length: columns }, (_, column) => (
              <span key={column}>
                <Bone width={85 - ((line * 13 + column * 29) % 50)} />
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  )
}

function inOrder<Row>(rows: Row[], columns: TableColumn<Row>[], order: { id: string; down: boolean } | null): Row[] {
  const by = columns.find((column) => column.id === order?.id)?.by
  if (!by || !order) return rows
  const sign = order.down ? -1 : 1
  const keyed = rows.map((row) => ({ row, key: by(row) }))
  keyed.sort((a, b) => sign * compare(a.key, b.key))
  return keyed.map((one) => one.row)
}

const collator = new Intl.Collator('en', { numeric: true })

function compare(a: string | number, b: string | number): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))
}

/** Up and down go from row to row, as in k9s. */
function moveFocus(event: KeyboardEvent<HTMLDivElement>): void {
  const down = event.key === 'ArrowDown' || event.key === 'j'
  const up = event.key === 'ArrowUp' || event.key === 'k'
  if ((!down && !up) || event.ctrlKey || event.metaKey) return
  const line = (document.activeElement as HTMLElement | null)?.closest('.line')
  if (!line) return
  const wanted = Number(line.getAttribute('aria-rowindex')) + (down ? 1 : -1)
  const next = event.currentTarget.querySelector<HTMLElement>(`.line[aria-rowindex="${wanted}"] a.name`)
  if (!next) return
  event.preventDefault()
  next.focus({ preventScroll: true })
  next.scrollIntoView({ block: 'nearest' })
}
