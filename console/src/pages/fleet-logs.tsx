// Logs of a workload in all members it was placed in.

import { useCallback, useEffect, useMemo, useState } from 'react'
import { useList, useOne } from '../api/hooks'
import { BINDINGS, PODS } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { bindingName, podSelector } from '../model/tree'
import { useHere } from '../place'
import { Bones, Empty, Notice } from '../ui/parts'
import Logs, { type LogSource } from './logs'

const MOST = 12

export default function FleetLogs({ template }: { template: KObject }) {
  const { place } = useHere()
  const { name, namespace } = template.metadata
  const binding = useOne(place, BINDINGS, { namespace, name: bindingName(template.kind ?? '', name) })
  const targets: { name: string }[] = binding.object?.spec?.clusters ?? []
  const [found, setFound] = useState<ReadonlyMap<string, KObject[]>>(new Map())
  const report = useCallback((cluster: string, pods: KObject[]) => setFound((before) => new Map(before).set(cluster, pods)), [])
  const sources = useMemo<LogSource[]>(() => [...found].flatMap(([member, pods]) => pods.map((pod) => ({ place: { instance: place.instance, member }, pod }))), [found, place.instance])
  if (!binding.loaded) return <Bones />
  return (
    <>
      {targets.slice(0, MOST).map((target) => (
        <PodsIn key={target.name} cluster={target.name} template={template} onPods={report} />
      ))}
      {targets.length > MOST && <Notice tone="idle" title={t('logs.clusters', { shown: MOST, n: targets.length })} />}
      {sources.length === 0 ? <Empty title={t('pods.none')} /> : <Logs sources={sources} />}
    </>
  )
}

/** Looks for pods in one member; shows nothing itself. */
function PodsIn({ cluster, template, onPods }: { cluster: string; template: KObject; onPods: (cluster: string, pods: KObject[]) => void }) {
  const { place } = useHere()
  const pods = useList({ instance: place.instance, member: cluster }, PODS, { namespace: template.metadata.namespace }, { labelSelector: podSelector(template) })
  useEffect(() => {
    if (pods.loaded) onPods(cluster, pods.items)
  }, [cluster, pods.loaded, pods.items, onPods])
  return null
}
