// What can be done to an object; only what the server would allow is offered.

import { EllipsisVertical, History, Pause, Pencil, Play, RotateCw, Scaling, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useMay } from '../api/access'
import type { Kind } from '../api/discovery'
import { call } from '../api/http'
import { path, type Place, POLICIES, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { listLink, policyLink } from '../model/links'
import { Dialog, Menu, RetypeDialog } from '../ui/dialog'
import { Button, Field } from '../ui/parts'
import { toast, toastError } from '../ui/toast'
import { RollbackDialog } from './rollback'

interface Props {
  object: KObject
  place: Place
  resource: Resource
  kind?: Kind
}

export function ObjectActions({ object, place, resource, kind }: Props) {
  const { name, namespace } = object.metadata
  const [, go] = useLocation()
  const [open, setOpen] = useState<'scale' | 'rollback' | 'delete' | null>(null)
  const about = { group: resource.group, resource: resource.plural, name, ...(namespace && { namespace }) }
  const mayPatch = useMay(place, { verb: 'patch', ...about })
  const mayDelete = useMay(place, { verb: 'delete', ...about })
  const scalable = kind?.subresources.includes('scale') && mayPatch
  const restartable = mayPatch && ['Deployment', 'StatefulSet', 'DaemonSet'].includes(object.kind ?? '')
  const editable = !place.member && resource.group === POLICIES.group && /(propagation|override)policies$/.test(resource.plural)
  const pausable = mayPatch && object.kind === 'Deployment'
  const patch = async (title: string, body: object) => {
    try {
      await call(path(place, resource, { namespace, name }), { method: 'PATCH', contentType: 'application/merge-patch+json', body })
      toast('ok', title)
    } catch (error) {
      toastError(title, error)
    }
  }
  const restart = () => patch(t('restart.done'), { spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': new Date().toISOString() } } } } })
  if (!mayPatch && !mayDelete) return null
  return (
    <>
      {mayPatch && editable && (
        <Link className="button" href={policyLink(place.instance, resource.plural, namespace, name)}>
          <Pencil size={14} aria-hidden="true" /> {t('edit')}
        </Link>
      )}
      {scalable && (
        <Button onClick={() => setOpen('scale')}>
          <Scaling size={14} aria-hidden="true" /> {t('scale')}
        </Button>
      )}
      <Menu label={t('actions')} button={<EllipsisVertical size={16} aria-hidden="true" />}>
        {restartable && (
          <button type="button" role="menuitem" className="item" onClick={restart}>
            <RotateCw size={14} aria-hidden="true" /> {t('restart')}
          </button>
        )}
        {pausable && (
          <button type="button" role="menuitem" className="item" onClick={() => patch(object.spec?.paused ? t('resumed') : t('paused'), { spec: { paused: !object.spec?.paused } })}>
            {object.spec?.paused ? <Play size={14} aria-hidden="true" /> : <Pause size={14} aria-hidden="true" />} {object.spec?.paused ? t('resume') : t('pause')}
          </button>
        )}
        {pausable && (
          <button type="button" role="menuitem" className="item" onClick={() => setOpen('rollback')}>
            <History size={14} aria-hidden="true" /> {t('rollback')}
          </button>
        )}
        {mayDelete && (
          <button type="button" role="menuitem" className="item danger" onClick={() => setOpen('delete')}>
            <Trash2 size={14} aria-hidden="true" /> {t('delete')}
          </button>
        )}
      </Menu>
      {open === 'scale' && <ScaleDialog object={object} place={place} resource={resource} onClose={() => setOpen(null)} />}
      {open === 'rollback' && <RollbackDialog object={object} place={place} resource={resource} onClose={() => setOpen(null)} />}
      {open === 'delete' && (
        <RetypeDialog
          title={t('delete.title', { kind: object.kind ?? '' })}
          name={name}
          verb={t('delete')}
          onClose={() => setOpen(null)}
          onConfirm={async () => {
            try {
              await call(path(place, resource, { namespace, name }, { propagationPolicy: 'Background' }), { method: 'DELETE' })
              toast('ok', t('deleted', { name }))
              go(listLink(place, resource, { ns: namespace }))
            } catch (error) {
              toastError(t('delete'), error)
            }
          }}
        >
          <p>{place.member ? t('delete.member', { member: place.member }) : t('delete.detail')}</p>
        </RetypeDialog>
      )}
    </>
  )
}

function ScaleDialog({ object, place, resource, onClose }: Props & { onClose: () => void }) {
  const { name, namespace } = object.metadata
  const [count, setCount] = useState<number>(object.spec?.replicas ?? 1)
  const save = async () => {
    try {
      await call(path(place, resource, { namespace, name, subresource: 'scale' }), { method: 'PATCH', contentType: 'application/merge-patch+json', body: { spec: { replicas: count } } })
      toast('ok', t('scaled', { name, count }))
      onClose()
    } catch (error) {
      toastError(t('scale'), error)
    }
  }
  return (
    <Dialog
      title={t('scale')}
      onClose={onClose}
      decide={
        <Button look="primary" onClick={save}>
          {t('scale')}
        </Button>
      }
    >
      <Field label={t('replicas')}>{(id) => <input id={id} type="number" min={0} max={100000} className="input" value={count} onChange={(event) => setCount(Math.max(0, Number(event.target.value)))} onKeyDown={(event) => event.key === 'Enter' && save()} autoFocus />}</Field>
    </Dialog>
  )
}
