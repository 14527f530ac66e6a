// When and how much one policy lends, as a week.

import { useState } from 'react'
import { Link } from 'wouter'
import { useMay } from '../api/access'
import { LEASES, type Place } from '../api/paths'
import type { Of } from '../api/types'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { clock, DAYS, hours, week } from '../model/windows'
import { Button, Pill, Tag, useNow } from '../ui/parts'
import { ReclaimDialog } from './lend'

const DAY = 24 * 60

export function LeaseCalendar({ policy, place }: { policy: Of<'ResourceLeasingPolicy'>; place: Place }) {
  const days = week(policy.spec?.timeWindows)
  const phase = policy.status?.phase ?? 'Pending'
  const zones: string[] = [...new Set((policy.spec?.timeWindows ?? []).map((one) => one.timeZone ?? '').filter(Boolean))]
  const now = new Date(useNow())
  const today = (now.getDay() + 6) % 7
  const minute = now.getHours() * 60 + now.getMinutes()
  const [reclaiming, setReclaiming] = useState(false)
  const may = useMay(place, { verb: 'delete', group: LEASES.group, resource: LEASES.plural, name: policy.metadata.name })
  return (
    <article className="stack tight">
      <div className="row wrap">
        <Link className="strong" href={objectLink(place, LEASES, undefined, policy.metadata.name)}>
          {policy.metadata.name}
        </Link>
        <Pill tone={phase === 'Active' ? 'ok' : phase === 'Failed' ? 'bad' : 'idle'}>{phase}</Pill>
        <span className="small muted">{t('lease.hours', { n: hours(days) })}</span>
        {(policy.spec?.resourceLimits ?? []).map((limit) => (
          <Tag key={limit.resource}>{`${limit.resource} ${[limit.quantity, limit.percent !== undefined && `${limit.percent}%`].filter(Boolean).join(' / ')}`}</Tag>
        ))}
        {policy.spec?.forceReclaim && <Pill tone="warn">{t('lease.force', { n: policy.spec.gracefulReclaimPeriodSeconds ?? 0 })}</Pill>}
        {zones.map((zone) => (
          <Tag key={zone}>{zone}</Tag>
        ))}
        {may && (
          <Button look="small" className="end" onClick={() => setReclaiming(true)} aria-label={`${t('lend.reclaim')}: ${policy.metadata.name}`}>
            {t('lend.reclaim')}
          </Button>
        )}
        {reclaiming && <ReclaimDialog policy={policy} place={place} onClose={() => setReclaiming(false)} />}
      </div>
      <div className="calendar" role="img" aria-label={describe(days)}>
        {DAYS.map((day, index) => (
          <div className="day" key={day}>
            <span className={index === today ? 'strong' : 'muted'}>{t(`day.${index}` as 'day.0')}</span>
            <div className="track">
              {days[index]?.map((one) => (
                <div key={one.from} className="open" title={`${clock(one.from)}–${clock(one.to)}`} style={{ left: `${(one.from / DAY) * 100}%`, width: `${((one.to - one.from) / DAY) * 100}%` }} />
              ))}
              {index === today && <div className="now" style={{ left: `${(minute / DAY) * 100}%` }} />}
            </div>
          </div>
        ))}
        <div className="day scale">
          <span />
          <div className="hours">
            {[0, 6, 12, 18, 24].map((hour) => (
              <span key={hour}>{hour}</span>
            ))}
          </div>
        </div>
      </div>
    </article>
  )
}

function describe(days: ReturnType<typeof week>): string {
  return days.map((stretches, index) => `${DAYS[index]}: ${stretches.map((one) => `${clock(one.from)}–${clock(one.to)}`).join(', ') || '—'}`).join('; ')
}
