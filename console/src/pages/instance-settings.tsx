// How an instance behaves when clusters fail, and what it may use.

import { useEffect, useState } from 'react'
import { useMay } from '../api/access'
import { call } from '../api/http'
import { useFetched, useList } from '../api/hooks'
import { INSTANCES, res } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { listLink, objectLink } from '../model/links'
import { Link } from 'wouter'
import { useHere } from '../place'
import { AsOf, Bones, Button, Cut, Empty, Failure, Field, Panel } from '../ui/parts'
import { toast, toastError } from '../ui/toast'
import { CreateButton } from './create'

const QUOTAS = res('policy.karmada.io', 'v1alpha1', 'federatedresourcequotas')
const MANAGE = '/apis/kairship.io/v1alpha1/instances'

interface Setting {
  enabled?: boolean
  timeout?: Record<string, string>
}

/** The times that mean something; the contract has more. */
const TIMES = ['clusterFailureThreshold', 'clusterMonitorGracePeriod', 'gracefulEvictionTimeout'] as const

export default function InstanceSettings() {
  const { place, fleet } = useHere()
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.isettings')}</h1>
      </div>
      <div className="grid two">
        {fleet && <Failover />}
        {fleet && <Quotas />}
        {!fleet && <Empty title={t('isettings.none')}>{t('isettings.none.detail', { name: place.instance })}</Empty>}
      </div>
    </div>
  )
}

function Failover() {
  const { place } = useHere()
  const title = t('isettings.failover')
  const url = `${MANAGE}/${encodeURIComponent(place.instance)}/failover`
  const mayEdit = useMay({ instance: 'root' }, { verb: 'patch', group: INSTANCES.group, resource: INSTANCES.plural, name: place.instance })
  const found = useFetched(url, async (signal) => ({ setting: await call<Setting>(url, { signal }), at: Date.now() }))
  const [draft, setDraft] = useState<Setting | null>(null)
  useEffect(() => setDraft(null), [found.value])
  const shown = draft ?? found.value?.setting
  const save = async () => {
    try {
      await call(url, { method: 'PUT', body: draft })
      toast('ok', t('saved'))
      found.again()
    } catch (error) {
      toastError(title, error)
    }
  }
  return (
    <Panel title={title} tools={found.value && <AsOf at={found.value.at} live={false} />}>
      {found.error && <Failure error={found.error} again={found.again} />}
      {!shown && !found.error && <Bones lines={5} />}
      {shown && (
        <div className="stack">
          <p className="small muted">{t('isettings.failover.about')}</p>
          <label className="check">
            <input type="checkbox" checked={shown.enabled ?? false} disabled={!mayEdit} onChange={(event) => setDraft({ ...shown, enabled: event.target.checked })} /> {t('isettings.enabled')}
          </label>
          <div className="pairs">
            {TIMES.map((key) => (
              <Field key={key} label={t(`isettings.${key}`)}>
                {(id) => <input id={id} className="input" inputMode="numeric" disabled={!mayEdit} value={shown.timeout?.[key] ?? ''} onChange={(event) => setDraft({ ...shown, timeout: { ...shown.timeout, [key]: event.target.value.replace(/\D/g, '') } })} />}
              </Field>
            ))}
          </div>
          {mayEdit && (
            <div className="row">
              <Button look="primary" disabled={!draft} onClick={save}>
                {t('save')}
              </Button>
              <Button disabled={!draft} onClick={() => setDraft(null)}>
                {t('yaml.discard')}
              </Button>
            </div>
          )}
        </div>
      )}
    </Panel>
  )
}

function Quotas() {
  const { place, serves } = useHere()
  const quotas = useList(serves(QUOTAS) ? place : null, QUOTAS)
  return (
    <Panel title={t('isettings.quotas')} flush tools={<><CreateButton place={place} resource={QUOTAS} kind="FederatedResourceQuota" namespace="default" /><AsOf at={quotas.at} live={quotas.live} /><Link className="small" href={listLink(place, QUOTAS)}>{t('open')}</Link></>}>
      {quotas.error ? (
        <div className="pad"><Failure error={quotas.error} /></div>
      ) : quotas.items.length === 0 ? (
        <Empty title={t('isettings.quotas.none')}>{t('isettings.quotas.none.detail')}</Empty>
      ) : (
        <ul className="lines">
          {quotas.items.map((quota) => (
            <QuotaLine key={quota.metadata.uid} quota={quota} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function QuotaLine({ quota }: { quota: KObject }) {
  const { place } = useHere()
  const used: Record<string, string> = quota.status?.overallUsed ?? {}
  const figures = Object.entries(quota.spec?.overall ?? {}).map(([resource, most]) => `${resource} ${used[resource] ?? 0} / ${String(most)}`)
  return (
    <li>
      <Link className="strong cut" href={objectLink(place, QUOTAS, quota.metadata.namespace, quota.metadata.name)}>{`${quota.metadata.namespace}/${quota.metadata.name}`}</Link>
      <Cut className="muted small grow">{figures.join(' · ')}</Cut>
    </li>
  )
}
