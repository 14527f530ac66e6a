// What happened in the instance, newest first; for administrators of the hub also who did what.

import { useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { useMay } from '../api/access'
import { useList } from '../api/hooks'
import { EVENTS } from '../api/paths'
import { t } from '../i18n'
import { useHere } from '../place'
import { AsOf, Filter, Segments } from '../ui/parts'
import { Audit } from './audit'
import { EventList } from './events'

const AUDITS = { verb: 'list', group: 'atoll.io', resource: 'audits' }

export default function Activity() {
  const [query, setQuery] = useSearchParams()
  const mayAudit = useMay({ instance: 'root' }, AUDITS)
  const view = query.get('view') === 'audit' && mayAudit !== false ? 'audit' : 'events'
  return (
    <div className={view === 'audit' ? 'page full' : 'page'}>
      <div className="title">
        <h1>{t('nav.activity')}</h1>
        <span className="end">{mayAudit && <Segments label={t('view')} value={view} onChange={(next) => setQuery({ view: next }, { replace: true })} options={[{ value: 'events', text: t('audit.events') }, { value: 'audit', text: t('audit.title') }]} />}</span>
      </div>
      {view === 'audit' ? <Audit /> : <Events />}
    </div>
  )
}

function Events() {
  const { place } = useHere()
  const events = useList(place, EVENTS)
  const [type, setType] = useState<'all' | 'Warning'>('all')
  const [text, setText] = useState('')
  const shown = useMemo(() => {
    const wanted = text.toLowerCase()
    return events.items.filter((event) => (type === 'all' || event.type === type) && (!wanted || [event.reason, event.message, event.involvedObject?.name, event.involvedObject?.kind].join(' ').toLowerCase().includes(wanted)))
  }, [events.items, type, text])
  return (
    <>
      <div className="bar">
        <Filter label={t('activity.filter')} value={text} onChange={setText} />
        <Segments label={t('activity.type')} value={type} onChange={setType} options={[{ value: 'all', text: t('activity.all') }, { value: 'Warning', text: t('activity.warnings') }]} />
        <span className="end row">
          {events.loaded && <span className="count">{shown.length}</span>}
          <AsOf at={events.at} live={events.live} />
        </span>
      </div>
      <section className="panel">
        <EventList events={shown} loaded={events.loaded} error={events.error} most={300} place={place} />
      </section>
    </>
  )
}
