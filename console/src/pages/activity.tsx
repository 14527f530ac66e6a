// What happened in the instance, newest first.

import { Search } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useList } from '../api/hooks'
import { EVENTS } from '../api/paths'
import { t } from '../i18n'
import { useHere } from '../place'
import { AsOf, Segments } from '../ui/parts'
import { EventList } from './events'

export default function Activity() {
  const { place } = useHere()
  const events = useList(place, EVENTS)
  const [type, setType] = useState<'all' | 'Warning'>('all')
  const [text, setText] = useState('')
  const shown = useMemo(() => {
    const wanted = text.toLowerCase()
    return events.items.filter((event) => (type === 'all' || event.type === type) && (!wanted || [event.reason, event.message, event.involvedObject?.name, event.involvedObject?.kind].join(' ').toLowerCase().includes(wanted)))
  }, [events.items, type, text])
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.activity')}</h1>
        {events.loaded && <span className="count">{shown.length}</span>}
        <span className="end">
          <AsOf at={events.at} live={events.live} />
        </span>
      </div>
      <div className="bar">
        <div className="search" style={{ width: 280 }}>
          <Search size={14} aria-hidden="true" />
          <input className="input" data-filter placeholder={t('activity.filter')} aria-label={t('activity.filter')} value={text} onChange={(event) => setText(event.target.value)} />
        </div>
        <Segments label={t('activity.type')} value={type} onChange={setType} options={[{ value: 'all', text: t('activity.all') }, { value: 'Warning', text: t('activity.warnings') }]} />
      </div>
      <section className="panel">
        <EventList events={shown} loaded={events.loaded} error={events.error} most={300} place={place} />
      </section>
    </div>
  )
}
