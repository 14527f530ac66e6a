// Events, newest first.

import { Link } from 'wouter'
import type { ApiError } from '../api/http'
import type { Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { resourceOf } from '../model/reference'
import { Age, Bones, Empty, Failure } from '../ui/parts'

export function timeOf(event: KObject): string {
  return event.lastTimestamp || event.series?.lastObservedTime || event.eventTime || event.firstTimestamp || event.metadata.creationTimestamp || ''
}

export function newestFirst(events: KObject[]): KObject[] {
  const version = (event: KObject) => Number(event.metadata.resourceVersion ?? 0)
  return [...events].sort((a, b) => timeOf(b).localeCompare(timeOf(a)) || version(b) - version(a))
}

export function EventList({ events, loaded, error, most = 100, place, of }: { events: KObject[]; loaded: boolean; error?: ApiError; most?: number; place: Place; of?: string }) {
  if (error && events.length === 0) {
    return (
      <div className="pad">
        <Failure error={error} />
      </div>
    )
  }
  if (!loaded) {
    return (
      <div className="pad">
        <Bones lines={5} />
      </div>
    )
  }
  if (events.length === 0) return <Empty title={t('events.none')}>{t('events.none.detail')}</Empty>
  return (
    <ul className="events">
      {newestFirst(events)
        .slice(0, most)
        .map((event) => (
          <li key={event.metadata.uid ?? event.metadata.name} className={`tone-${event.type === 'Warning' ? 'warn' : 'idle'}`}>
            <span className="dot" title={event.type} />
            <div className="grow">
              <div className="row wrap gap-4 small">
                <span className="strong">{event.reason}</span>
                {of === undefined && <Subject event={event} place={place} />}
                {(event.count ?? event.series?.count ?? 1) > 1 && <span className="count">×{event.count ?? event.series?.count}</span>}
                <span className="end faint tiny">
                  <Age since={timeOf(event)} />
                </span>
              </div>
              <div className="small muted breaks">{event.message ?? event.note}</div>
            </div>
          </li>
        ))}
    </ul>
  )
}

function Subject({ event, place }: { event: KObject; place: Place }) {
  const about = event.involvedObject ?? event.regarding
  if (!about?.name) return null
  const text = `${about.kind} ${about.namespace ? `${about.namespace}/` : ''}${about.name}`
  return (
    <Link className="cut subject" title={text} href={objectLink(place, resourceOf(about), about.namespace, about.name)}>
      {text}
    </Link>
  )
}
