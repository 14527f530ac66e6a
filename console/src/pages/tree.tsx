// Where a template went and why: template → policy → decision → work → object → pods, live.

import { ArrowRight, FileText, GitFork, Scale } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import { Link } from 'wouter'
import { useList, useOne } from '../api/hooks'
import { BINDINGS, CLUSTER_BINDINGS, CLUSTER_POLICIES, CLUSTERS, POLICIES, type Resource, WORKS } from '../api/paths'
import type { KObject } from '../api/types'
import { t, type Word } from '../i18n'
import { replicas } from '../model/health'
import { instanceLink } from '../model/links'
import { bindingName, buildTree, laneHealth, obstacle, type Tree } from '../model/tree'
import { useHere } from '../place'
import { Age, AsOf, Bones, Cut, Notice, Pill } from '../ui/parts'
import { type DrawerTarget, ObjectDrawer } from './drawer'
import { Lanes } from './lanes'
import { Refusals } from './refusals'

export default function TreeTab({ template, resource }: { template: KObject; resource: Resource }) {
  const { place } = useHere()
  const { name, namespace } = template.metadata
  const bindings = namespace ? BINDINGS : CLUSTER_BINDINGS
  const binding = useOne(place, bindings, { namespace, name: bindingName(template.kind ?? '', name) })
  const works = useWorks(binding.object)
  const clusters = useList(place, CLUSTERS)
  const [pods, setPods] = useState<ReadonlyMap<string, KObject[]>>(new Map())
  const [drawer, setDrawer] = useState<DrawerTarget | null>(null)
  const report = useCallback((cluster: string, found: KObject[]) => setPods((before) => new Map(before).set(cluster, found)), [])
  const tree = useMemo(() => buildTree({ template, binding: binding.object, works: works.items, clusters: clusters.items }), [template, binding.object, works.items, clusters.items])
  if (!binding.loaded || (binding.object && (!works.loaded || !clusters.loaded))) return <Bones lines={8} />
  return (
    <div className="tree stack">
      <Verdict tree={tree} pods={pods} />
      <div className="chain">
        <TemplateNode template={template} onOpen={() => setDrawer({ place, resource, namespace, name, title: template.kind ?? '' })} />
        <Arrow />
        <PolicyNode template={template} binding={binding.object} onOpen={setDrawer} />
        <Arrow />
        <BindingNode tree={tree} at={binding.at} live={binding.live} onOpen={() => setDrawer({ place, resource: bindings, namespace, name: bindingName(template.kind ?? '', name), title: 'ResourceBinding' })} />
      </div>
      {tree.lanes.length > 0 && <Lanes tree={tree} resource={resource} pods={pods} onPods={report} onOpen={setDrawer} />}
      {tree.decision && <Refusals decision={tree.decision} />}
      {drawer && <ObjectDrawer target={drawer} onClose={() => setDrawer(null)} />}
    </div>
  )
}

function useWorks(binding: KObject | undefined) {
  const { place } = useHere()
  const label = binding?.metadata.namespace ? 'resourcebinding.karmada.io/permanent-id' : 'clusterresourcebinding.karmada.io/permanent-id'
  const id = binding?.metadata.labels?.[label]
  return useList(id ? place : null, WORKS, {}, { labelSelector: `${label}=${id}` })
}

/** The one sentence that answers: why is it not running there? */
function Verdict({ tree, pods }: { tree: Tree; pods: ReadonlyMap<string, KObject[]> }) {
  const { place } = useHere()
  const found = obstacle(tree, pods)
  const policyPage = found.word === 'tree.nopolicy' && tree.template
  return (
    <Notice
      tone={found.tone}
      title={t(found.word, found.values)}
      action={
        policyPage && (
          <Link className="button primary" href={instanceLink(place.instance, 'policies/new', { kind: tree.template?.kind, api: tree.template?.apiVersion, name: tree.template?.metadata.name, ns: tree.template?.metadata.namespace })}>
            {t('policy.create')}
          </Link>
        )
      }
    >
      {found.hint && t(found.hint)}
    </Notice>
  )
}

function Arrow() {
  return <ArrowRight className="arrow" size={18} aria-hidden="true" />
}

function TemplateNode({ template, onOpen }: { template: KObject; onOpen: () => void }) {
  const count = replicas(template)
  return (
    <button type="button" className="node" onClick={onOpen}>
      <span className="kind">
        <FileText size={13} aria-hidden="true" /> {t('tree.template')} · {template.kind}
      </span>
      <Cut className="strong">{template.metadata.name}</Cut>
      <span className="tiny muted">{count ? t('tree.replicas', { ready: count.ready, wanted: count.wanted }) : <Age since={template.metadata.creationTimestamp} />}</span>
    </button>
  )
}

function PolicyNode({ template, binding, onOpen }: { template: KObject; binding?: KObject; onOpen: (target: DrawerTarget) => void }) {
  const { place } = useHere()
  const notes = { ...template.metadata.annotations, ...binding?.metadata.annotations }
  const namespaced = notes['propagationpolicy.karmada.io/name']
  const name = namespaced ?? notes['clusterpropagationpolicy.karmada.io/name']
  const namespace = namespaced ? (notes['propagationpolicy.karmada.io/namespace'] ?? template.metadata.namespace) : undefined
  if (!name) {
    return (
      <div className="node missing">
        <span className="kind">
          <Scale size={13} aria-hidden="true" /> {t('tree.policy')}
        </span>
        <span className="muted">{t('tree.policy.none')}</span>
      </div>
    )
  }
  return (
    <button type="button" className="node" onClick={() => onOpen({ place, resource: namespaced ? POLICIES : CLUSTER_POLICIES, namespace, name, title: namespaced ? 'PropagationPolicy' : 'ClusterPropagationPolicy' })}>
      <span className="kind">
        <Scale size={13} aria-hidden="true" /> {namespaced ? t('tree.policy') : t('tree.policy.cluster')}
      </span>
      <Cut className="strong">{name}</Cut>
      <span className="tiny muted">{strategy(binding)}</span>
    </button>
  )
}

function strategy(binding: KObject | undefined): string {
  const scheduling = binding?.spec?.placement?.replicaScheduling
  if (!scheduling) return t('policy.duplicated')
  if (scheduling.replicaSchedulingType === 'Duplicated') return t('policy.duplicated')
  if (scheduling.replicaDivisionPreference === 'Aggregated') return t('policy.aggregated')
  return scheduling.weightPreference?.staticWeightList ? t('policy.static') : t('policy.dynamic')
}

const TRIGGERS: Record<string, Word> = { placementChanged: 'tree.trigger.placement', replicasChanged: 'tree.trigger.replicas', requested: 'tree.trigger.requested', clusterDeleting: 'tree.trigger.deleting', copied: 'tree.trigger.copied' }

/** Why it was decided; a reason that is not known is told as it is. */
function why(trigger: string): string {
  const word = TRIGGERS[trigger]
  return word ? t(word) : trigger
}

function BindingNode({ tree, at, live, onOpen }: { tree: Tree; at: number; live: boolean; onOpen: () => void }) {
  const { binding, decision, lanes } = tree
  if (!binding) {
    return (
      <div className="node missing">
        <span className="kind">
          <GitFork size={13} aria-hidden="true" /> {t('tree.decision')}
        </span>
        <span className="muted">{t('tree.decision.none')}</span>
      </div>
    )
  }
  const chosen = lanes.filter((lane) => !lane.evicting)
  const total = chosen.reduce((sum, lane) => sum + lane.replicas, 0)
  const well = chosen.filter((lane) => laneHealth(lane).tone === 'ok').length
  const refused = decision?.refused.reduce((sum, one) => sum + one.clusters.length, 0) ?? 0
  return (
    <button type="button" className="node wide" onClick={onOpen}>
      <span className="kind">
        <GitFork size={13} aria-hidden="true" /> {t('tree.decision')}
        <span className="end">
          <AsOf at={at} live={live} />
        </span>
      </span>
      <span className="row wrap">
        {decision?.error ? (
          <Pill tone="bad" title={decision.error.message}>
            {decision.error.reason}
          </Pill>
        ) : (
          <span className="strong">{total > 0 ? t('tree.chosen.replicas', { n: chosen.length, total }) : t('tree.chosen', { n: chosen.length })}</span>
        )}
        {chosen.length > 0 && <Pill tone={well === chosen.length ? 'ok' : 'warn'}>{t('tree.wellof', { well, n: chosen.length })}</Pill>}
      </span>
      <span className="tiny muted">
        {decision?.at && (
          <>
            {t('tree.decided')} <Age since={decision.at} /> {t('ago')}
          </>
        )}
        {decision?.trigger && ` · ${why(decision.trigger)}`}
        {decision?.affinity && ` · ${t('tree.affinity')} ${decision.affinity}`}
        {refused > 0 && ` · ${t('tree.refusedcount', { n: refused })}`}
      </span>
    </button>
  )
}

