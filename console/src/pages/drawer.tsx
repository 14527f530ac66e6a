// An object beside the page: its YAML, what differs, its events.

import { ExternalLink } from 'lucide-react'
import { lazy, Suspense, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useList, useOne } from '../api/hooks'
import { EVENTS, type Place, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { Dialog } from '../ui/dialog'
import { Bones, Cut, Failure, Segments } from '../ui/parts'
import { EventList } from './events'

const ReadOnly = lazy(() => import('./read-only'))

export interface DrawerTarget {
  place: Place
  resource: Resource
  namespace?: string
  name: string
  title: string
  /** What it should be, to show the difference. */
  compare?: KObject
}

type View = 'yaml' | 'diff' | 'events'

export function ObjectDrawer({ target, onClose }: { target: DrawerTarget; onClose: () => void }) {
  const { place, resource, namespace, name } = target
  const [view, setView] = useState<View>('yaml')
  const { object, error } = useOne(place, resource, { namespace, name })
  const options = useMemo(
    () => [{ value: 'yaml' as View, text: t('yaml') }, ...(target.compare ? [{ value: 'diff' as View, text: t('diff') }] : []), { value: 'events' as View, text: t('tab.events') }],
    [target.compare],
  )
  return (
    <Dialog
      look="drawer"
      onClose={onClose}
      title={
        <span className="stack tight">
          <span className="tiny muted">{target.title}</span>
          <Cut>{name}</Cut>
        </span>
      }
      tools={
        <Link className="button small" href={objectLink(place, resource, namespace, name)}>
          <ExternalLink size={13} aria-hidden="true" /> {t('open')}
        </Link>
      }
    >
      <div className="stack fill">
        <div className="row">
          <Segments<View> label={t('view')} value={view} onChange={setView} options={options} />
        </div>
        {error && !object && <Failure error={error} />}
        {!object && !error && <Bones lines={10} />}
        {object && view === 'events' && <DrawerEvents place={place} object={object} />}
        {object && view !== 'events' && (
          <Suspense fallback={<Bones lines={10} />}>
            <ReadOnly object={object} original={view === 'diff' ? target.compare : undefined} />
          </Suspense>
        )}
      </div>
    </Dialog>
  )
}

function DrawerEvents({ place, object }: { place: Place; object: KObject }) {
  const { name, namespace } = object.metadata
  const events = useList(place, EVENTS, { namespace }, { fieldSelector: `involvedObject.name=${name}` })
  return <EventList events={events.items} loaded={events.loaded} error={events.error} place={place} of={name} />
}
