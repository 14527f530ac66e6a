// What would move, for each template and cluster.

import { ArrowRight } from 'lucide-react'
import { useEffect, useState } from 'react'
import type { ApiError } from '../api/http'
import { useFetched } from '../api/hooks'
import type { Place } from '../api/paths'
import { type Change, isUnplannable, type Move, plan } from '../api/plan'
import { t } from '../i18n'
import { moves as isMoving, steps } from '../model/moves'
import { Bones, Cut, Empty, Failure, Notice, Panel } from '../ui/parts'

const MOST = 40
const TONE = { new: 'ok', more: 'ok', less: 'warn', gone: 'bad', same: 'idle' } as const

/** The plan for a change; asked anew a moment after the change was last touched. */
export function Moves({ place, change }: { place: Place; change: Change }) {
  const wanted = JSON.stringify(change)
  const [settled, setSettled] = useState(wanted)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(wanted), 500)
    return () => clearTimeout(timer)
  }, [wanted])
  const found = useFetched(`plan ${place.instance} ${settled}`, (signal) => plan(place, JSON.parse(settled), signal))
  if (found.error) return <Unplanned error={found.error} again={found.again} />
  if (!found.value) return <Bones lines={3} />
  return <MoveList moves={found.value} />
}

export function MovesPanel({ place, change }: { place: Place; change: Change }) {
  return (
    <Panel title={t('plan.title')}>
      <Moves place={place} change={change} />
    </Panel>
  )
}

function Unplanned({ error, again }: { error: ApiError; again: () => void }) {
  if (isUnplannable(error)) return <Notice tone="idle" title={t('plan.unserved')}>{t('plan.unserved.detail')}</Notice>
  return error.code === 400 ? <Notice tone="warn" title={t('plan.unreadable')}>{error.message}</Notice> : <Failure error={error} again={again} />
}

function MoveList({ moves }: { moves: Move[] }) {
  const moving = moves.filter(isMoving)
  if (moving.length === 0) return <Empty title={t('plan.nothing')}>{moves.length > 0 && t('plan.nothing.detail', { n: moves.length })}</Empty>
  return (
    <ul className="moves">
      {moving.slice(0, MOST).map((move) => (
        <li key={move.subject}>
          <Cut className="strong">{move.subject}</Cut>
          <span className="row wrap gap-4">
            {steps(move).map((step) => (
              <span key={step.cluster} className={`step tone-${TONE[step.change]}`} title={t(`plan.${step.change}`)}>
                <Cut>{step.cluster}</Cut>
                <span className="num">{step.before ?? 0}</span>
                {step.change !== 'same' && (
                  <>
                    <ArrowRight size={11} aria-label={t(`plan.${step.change}`)} />
                    <span className="num strong">{step.after ?? 0}</span>
                  </>
                )}
              </span>
            ))}
          </span>
          {move.error && <span className="small toned tone-bad">{move.error}</span>}
        </li>
      ))}
      {moving.length > MOST && <li className="tiny faint">{t('more', { n: moving.length - MOST })}</li>}
    </ul>
  )
}
