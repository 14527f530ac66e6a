// Back to what it was: revisions that the members still know.

import { useMemo, useState } from 'react'
import { call } from '../api/http'
import { useFetched, useList } from '../api/hooks'
import { CLUSTERS, path, type Place, res, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { revisions } from '../model/revisions'
import { podSelector } from '../model/tree'
import { useHere } from '../place'
import { Dialog } from '../ui/dialog'
import { Age, Bones, Button, Cut, Empty, Tag } from '../ui/parts'
import { toast, toastError } from '../ui/toast'

const SETS = res('apps', 'v1', 'replicasets')

export function RollbackDialog({ object, place, resource, onClose }: { object: KObject; place: Place; resource: Resource; onClose: () => void }) {
  const { fleet } = useHere()
  const spread = fleet && !place.member
  const clusters = useList(spread ? place : null, CLUSTERS)
  const places: Place[] = spread ? clusters.items.map((cluster) => ({ instance: place.instance, member: cluster.metadata.name })) : [place]
  const found = useFetched(!spread || clusters.loaded ? `sets ${JSON.stringify(places)} ${object.metadata.uid}` : null, (signal) => setsOf(places, object, signal))
  const known = useMemo(() => (found.value ? revisions(object, found.value) : undefined), [found.value, object])
  const [chosen, setChosen] = useState<number | null>(null)
  const save = async () => {
    const revision = chosen === null ? undefined : known?.[chosen]
    if (!revision) return
    const { name, namespace } = object.metadata
    try {
      const body = { metadata: { resourceVersion: object.metadata.resourceVersion }, spec: { template: { $patch: 'replace', ...revision.template } } }
      await call(path(place, resource, { namespace, name }), { method: 'PATCH', contentType: 'application/strategic-merge-patch+json', body })
      toast('ok', t('rollback.done', { n: revision.number }))
      onClose()
    } catch (error) {
      toastError(t('rollback'), error)
    }
  }
  return (
    <Dialog
      title={t('rollback')}
      onClose={onClose}
      decide={
        <Button look="primary" disabled={chosen === null} onClick={save}>
          {t('rollback')}
        </Button>
      }
    >
      <div className="stack">
        {!known && <Bones lines={4} />}
        {known?.length === 0 && <Empty title={t('rollback.none')}>{t('rollback.none.detail')}</Empty>}
        {known?.map((revision, index) => (
          <label key={`${revision.number} ${revision.images.join()}`} className="choice">
            <input type="radio" name="revision" disabled={revision.current} checked={chosen === index} onChange={() => setChosen(index)} />
            <span className="stack tight grow">
              <span className="row wrap gap-4">
                <span className="strong">{t('rollback.revision', { n: revision.number })}</span>
                {revision.current && <Tag>{t('rollback.current')}</Tag>}
                <span className="tiny faint"><Age since={revision.at} /></span>
              </span>
              <Cut className="mono small">{revision.images.join(', ')}</Cut>
              {revision.members.length > 0 && <Cut className="tiny muted">{t('rollback.ran', { where: revision.members.join(', ') })}</Cut>}
            </span>
          </label>
        ))}
        {spread && known && known.length > 0 && <p className="small muted">{t('rollback.note')}</p>}
      </div>
    </Dialog>
  )
}

async function setsOf(places: Place[], object: KObject, signal: AbortSignal): Promise<{ member?: string; set: KObject }[]> {
  const query = { labelSelector: podSelector(object) }
  const answers = await Promise.all(
    places.map((place) =>
      call(path(place, SETS, { namespace: object.metadata.namespace }, query), { signal }).then(
        (list) => (list.items as KObject[]).filter((set) => set.metadata.ownerReferences?.some((owner) => owner.name === object.metadata.name)).map((set) => ({ member: place.member, set })),
        // A member that does not answer has nothing to add.
        () => [],
      ),
    ),
  )
  return answers.flat()
}
