// What can be done to a member.

import { Ban, EllipsisVertical, LogOut, MoveRight, Pencil, Play, Unplug } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useMay } from '../api/access'
import { ApiError, call } from '../api/http'
import { useList } from '../api/hooks'
import { BINDINGS, CLUSTERS, path } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { CORDON, isCordoned } from '../model/health'
import { instanceLink, objectLink } from '../model/links'
import { useHere } from '../place'
import { Dialog, Menu, RetypeDialog } from '../ui/dialog'
import { Button, Notice } from '../ui/parts'
import { toast, toastError } from '../ui/toast'
import { Moves } from './moves'

export function ClusterMenu({ cluster }: { cluster: KObject }) {
  const { place } = useHere()
  const [, go] = useLocation()
  const [leaving, setLeaving] = useState(false)
  const [losing, setLosing] = useState(false)
  const [draining, setDraining] = useState(false)
  const { name } = cluster.metadata
  const mayEdit = useMay(place, { verb: 'patch', group: CLUSTERS.group, resource: CLUSTERS.plural })
  const mayLeave = useMay(place, { verb: 'delete', group: CLUSTERS.group, resource: CLUSTERS.plural })
  const cordoned = isCordoned(cluster)
  return (
    <>
      <Menu label={t('actions')} look="bare icon small" button={<EllipsisVertical size={15} aria-hidden="true" />}>
        {mayEdit && (
          <button type="button" role="menuitem" className="item" onClick={() => setCordon(place, cluster, !cordoned)}>
            {cordoned ? <Play size={14} aria-hidden="true" /> : <Ban size={14} aria-hidden="true" />} {cordoned ? t('cluster.uncordon') : t('cluster.cordon')}
          </button>
        )}
        {mayEdit && (
          <button type="button" role="menuitem" className="item" onClick={() => (isDrained(cluster) ? setDrain(place, cluster, false) : setDraining(true))}>
            <MoveRight size={14} aria-hidden="true" /> {isDrained(cluster) ? t('cluster.undrain') : t('cluster.drain')}
          </button>
        )}
        <button type="button" role="menuitem" className="item" onClick={() => setLosing(true)}>
          <Unplug size={14} aria-hidden="true" /> {t('cluster.lose')}
        </button>
        {mayEdit && (
          <button type="button" role="menuitem" className="item" onClick={() => go(objectLink(place, CLUSTERS, undefined, name, { tab: 'yaml' }))}>
            <Pencil size={14} aria-hidden="true" /> {t('cluster.edit')}
          </button>
        )}
        {mayLeave && (
          <>
            <div className="apart" />
            <button type="button" role="menuitem" className="item danger" onClick={() => setLeaving(true)}>
              <LogOut size={14} aria-hidden="true" /> {t('cluster.leave')}
            </button>
          </>
        )}
      </Menu>
      {losing && (
        <Dialog look="wide" title={t('cluster.lose.title', { name })} onClose={() => setLosing(false)} footer={<Button onClick={() => setLosing(false)}>{t('close')}</Button>}>
          <div className="stack">
            <p className="small muted">{t('cluster.lose.detail')}</p>
            <Moves place={place} change={{ without: name }} />
          </div>
        </Dialog>
      )}
      {draining && (
        <Dialog
          look="wide"
          title={t('cluster.drain.title', { name })}
          onClose={() => setDraining(false)}
          footer={
            <>
              <Button onClick={() => setDraining(false)}>{t('cancel')}</Button>
              <Button look="primary" onClick={() => setDrain(place, cluster, true).then(() => setDraining(false))}>
                {t('cluster.drain')}
              </Button>
            </>
          }
        >
          <div className="stack">
            <p className="small muted">{t('cluster.drain.detail')}</p>
            <Moves place={place} change={{ without: name }} />
          </div>
        </Dialog>
      )}
      {leaving && <LeaveDialog name={name} onClose={() => setLeaving(false)} onDone={() => go(instanceLink(place.instance, 'clusters'))} />}
    </>
  )
}

/** The taint that moves everything away, where failover is switched on. */
const DRAIN = 'atoll.io/drain'

function isDrained(cluster: KObject): boolean {
  return (cluster.spec?.taints ?? []).some((taint: { key: string }) => taint.key === DRAIN)
}

async function setDrain(place: { instance: string }, cluster: KObject, on: boolean): Promise<void> {
  const { name } = cluster.metadata
  try {
    await setTaint(place, name, DRAIN, on ? 'NoExecute' : null)
    toast('ok', t(on ? 'cluster.drained' : 'cluster.undrained', { name }))
  } catch (error) {
    toastError(t('cluster.drain'), error)
  }
}

/** Other taints stay. Status changes often, so a write that came too late is tried again. */
async function setTaint(place: { instance: string }, name: string, key: string, effect: string | null, tries = 5): Promise<void> {
  const url = path(place, CLUSTERS, { name })
  const now = await call<KObject>(url)
  const others: { key: string }[] = (now.spec?.taints ?? []).filter((taint: { key: string }) => taint.key !== key)
  const taints = effect ? [...others, { key, effect }] : others
  try {
    await call(url, { method: 'PATCH', contentType: 'application/merge-patch+json', body: { metadata: { resourceVersion: now.metadata.resourceVersion }, spec: { taints } } })
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 409 && tries > 1)) throw error
    await setTaint(place, name, key, effect, tries - 1)
  }
}

async function setCordon(place: { instance: string }, cluster: KObject, on: boolean): Promise<void> {
  const { name } = cluster.metadata
  try {
    await setTaint(place, name, CORDON, on ? 'NoSchedule' : null)
    toast('ok', t(on ? 'cluster.cordoned' : 'cluster.uncordoned', { name }))
  } catch (error) {
    toastError(t('cluster.cordon'), error)
  }
}

function LeaveDialog({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: () => void }) {
  const { place } = useHere()
  const bindings = useList(place, BINDINGS)
  const here = bindings.items.filter((binding) => binding.spec?.clusters?.some((target) => target.name === name))
  const alone = here.filter((binding) => binding.spec?.clusters?.length === 1)
  const leave = async () => {
    try {
      await call(path(place, CLUSTERS, { name }), { method: 'DELETE' })
      toast('ok', t('cluster.left', { name }))
      onClose()
      onDone()
    } catch (error) {
      toastError(t('cluster.leave'), error)
    }
  }
  return (
    <RetypeDialog title={t('cluster.leave')} name={name} verb={t('cluster.leave')} onClose={onClose} onConfirm={leave}>
      <p>{t('cluster.leave.detail', { name })}</p>
      <Notice tone={here.length ? 'warn' : 'idle'} title={t('cluster.leave.affected', { n: here.length })}>
        {alone.length > 0 && <div>{t('cluster.leave.alone', { n: alone.length })}</div>}
        <ul>
          {here.slice(0, 8).map((binding) => (
            <li key={binding.metadata.uid} className="breaks">
              {binding.spec?.resource.kind} {binding.metadata.namespace}/{binding.spec?.resource.name}
            </li>
          ))}
          {here.length > 8 && <li>+{here.length - 8}</li>}
        </ul>
      </Notice>
    </RetypeDialog>
  )
}
