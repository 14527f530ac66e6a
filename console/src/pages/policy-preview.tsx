// Before a policy is saved: what it selects now, and which clusters it may choose.

import { Check, Minus } from 'lucide-react'
import { useMemo } from 'react'
import { useList } from '../api/hooks'
import type { Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { clusterFits, inAffinity, names, type Selector } from '../model/policy'
import { resourceOf } from '../model/reference'
import { useHere } from '../place'
import { Cut, Panel } from '../ui/parts'

export function PolicyPreview({ policy, clusters, override }: { policy: KObject; clusters: KObject[]; override: boolean }) {
  const { place } = useHere()
  const selectors: Selector[] = (policy.spec?.resourceSelectors ?? []).slice(0, 5)
  const fits = useMemo(
    () => (override ? clusters.map((cluster) => ({ cluster, fits: inAffinity(policy.spec?.overrideRules?.[0]?.targetCluster, cluster), why: undefined })) : clusterFits(policy.spec?.placement, clusters)),
    [policy, clusters, override],
  )
  const fitting = fits.filter((one) => one.fits)
  return (
    <div className="stack">
      <Panel title={t('preview.objects')}>
        <div className="stack">
          {selectors.map((selector, index) => (
            <Selected key={`${index}${selector.apiVersion}${selector.kind}`} selector={selector} policy={policy} place={place} />
          ))}
        </div>
      </Panel>
      <Panel title={t('preview.clusters')} tools={<span className="count">{`${fitting.length} / ${clusters.length}`}</span>}>
        <ul className="fits">
          {[...fits].sort((a, b) => Number(b.fits) - Number(a.fits)).slice(0, 60).map((one) => (
            <li key={one.cluster.metadata.name} className={one.fits ? undefined : 'faint'}>
              {one.fits ? <Check size={14} aria-label={t('yes')} /> : <Minus size={14} aria-label={t('no')} />}
              <Cut>{one.cluster.metadata.name}</Cut>
              {one.why && <span className="tiny end cut" title={one.why}>{one.why === 'affinity' ? t('preview.affinity') : one.why}</span>}
            </li>
          ))}
        </ul>
        <p className="tiny faint">{t('preview.note')}</p>
      </Panel>
    </div>
  )
}

function Selected({ selector, policy, place }: { selector: Selector; policy: KObject; place: Place }) {
  const resource = resourceOf(selector)
  const list = useList(selector.kind ? place : null, resource, { namespace: selector.namespace || policy.metadata.namespace })
  const found = list.items.filter((object) => names(selector, object, policy.metadata.namespace))
  const taken = found.filter((object) => {
    const notes = object.metadata.annotations ?? {}
    const other = notes['propagationpolicy.karmada.io/name'] ?? notes['clusterpropagationpolicy.karmada.io/name']
    return other && other !== policy.metadata.name
  })
  return (
    <div className="stack tight">
      <div className="row small">
        <span className="strong">{selector.kind}</span>
        <span className="count">{list.loaded ? found.length : '…'}</span>
      </div>
      {found.slice(0, 8).map((object) => (
        <Cut key={object.metadata.uid ?? object.metadata.name} className="small muted">
          {`${object.metadata.namespace ? `${object.metadata.namespace}/` : ''}${object.metadata.name}`}
        </Cut>
      ))}
      {list.loaded && found.length === 0 && <span className="small faint">{t('preview.none')}</span>}
      {found.length > 8 && <span className="tiny faint">{t('more', { n: found.length - 8 })}</span>}
      {taken.length > 0 && <span className="small tone-warn toned">{t('preview.taken', { n: taken.length })}</span>}
    </div>
  )
}
