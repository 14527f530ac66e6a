// What can be done to a member.

import { Ban, EllipsisVertical, LogOut, Pencil, Play, Unplug } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useMay } from '../api/access'
import { call } from '../api/http'
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
      {leaving && <LeaveDialog name={name} onClose={() => setLeaving(false)} onDone={() => go(instanceLink(place.instance, 'clusters'))} />}
    </>
  )
}

async function setCordon(place: { instance: string }, cluster: KObject, on: boolean): Promise<void> {
  const taints: { key: string }[] = (cluster.spec?.taints ?? []).filter((taint: { key: string }) => taint.key !== CORDON)
  const next = on ? [...taints, { key: CORDON, effect: 'NoSchedule' }] : taints
  try {
    await call(path(place, CLUSTERS, { name: cluster.metadata.name }), {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { metadata: { resourceVersion: cluster.metadata.resourceVersion }, spec: { taints: next } },
    })
    toast('ok', t(on ? 'cluster.cordoned' : 'cluster.uncordoned', { name: cluster.metadata.name }))
  } catch (error) {
    toastError(t('cluster.cordon'), error)
  }
}

function LeaveDialog({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: () => void }) {
  const { place } = useHere()
  const bindings = useList(place, BINDINGS)
  const here = bindings.items.filter((binding) => binding.spec?.clusters?.some((target: { name: string }) => target.name === name))
  const alone = here.filter((binding) => binding.spec.clusters.length === 1)
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
              {binding.spec.resource.kind} {binding.metadata.namespace}/{binding.spec.resource.name}
            </li>
          ))}
          {here.length > 8 && <li>+{here.length - 8}</li>}
        </ul>
      </Notice>
    </RetypeDialog>
  )
}
