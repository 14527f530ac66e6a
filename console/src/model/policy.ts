// What a policy would select: objects by its selectors, clusters by its placement.

import type { KObject, Of } from '../api/types'

type Spec = NonNullable<Of<'PropagationPolicy'>['spec']>
export type Placement = Spec['placement']
export type Selector = Spec['resourceSelectors'][number]
type Affinity = NonNullable<NonNullable<Placement>['clusterAffinity']>
type Toleration = NonNullable<NonNullable<Placement>['clusterTolerations']>[number]
type Cluster = Of<'Cluster'>
type Taint = NonNullable<NonNullable<Cluster['spec']>['taints']>[number]

interface Requirement {
  key: string
  operator: string
  values?: string[]
}

export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: Requirement[]
}

export function selects(selector: LabelSelector | undefined, labels: Record<string, string> = {}): boolean {
  if (!selector) return true
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value)
  return equal && (selector.matchExpressions ?? []).every((one) => meets(one, labels[one.key]))
}

function meets({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    default:
      return false
  }
}

/** Whether a resource selector of a policy names an object. */
export function names(selector: Selector, object: KObject, policyNamespace: string | undefined): boolean {
  if (selector.apiVersion !== object.apiVersion || selector.kind !== object.kind) return false
  const namespace = selector.namespace || policyNamespace
  if (namespace && object.metadata.namespace && object.metadata.namespace !== namespace) return false
  if (selector.name) return selector.name === object.metadata.name
  return selects(selector.labelSelector, object.metadata.labels)
}

/** Whether a cluster is in the set an affinity chooses from. */
export function inAffinity(affinity: Affinity | undefined, cluster: Cluster): boolean {
  if (!affinity) return true
  const { name, labels } = cluster.metadata
  if ((affinity.exclude ?? []).includes(name)) return false
  if (affinity.clusterNames?.length && !affinity.clusterNames.includes(name)) return false
  if (affinity.labelSelector && !selects(affinity.labelSelector, labels)) return false
  return (affinity.fieldSelector?.matchExpressions ?? []).every((one) => fieldMeets(one, cluster))
}

function fieldMeets(requirement: Requirement, cluster: Cluster): boolean {
  const { zone, zones, region, provider } = cluster.spec ?? {}
  const values = requirement.key === 'zone' ? (zones ?? [zone]) : [requirement.key === 'region' ? region : requirement.key === 'provider' ? provider : undefined]
  return requirement.operator === 'In' ? values.some((value) => meets(requirement, value)) : values.every((value) => meets(requirement, value))
}

export interface Fit {
  cluster: Cluster
  fits: boolean
  why?: string
}

/** Which clusters a placement may choose, before room and spread are looked at. */
export function clusterFits(placement: Placement, clusters: Cluster[]): Fit[] {
  const terms = placement?.clusterAffinities?.length ? placement.clusterAffinities : [placement?.clusterAffinity]
  return clusters.map((cluster) => {
    if (!terms.some((term) => inAffinity(term, cluster))) return { cluster, fits: false, why: 'affinity' }
    const taint = (cluster.spec?.taints ?? []).find((one) => one.effect !== 'PreferNoSchedule' && !(placement?.clusterTolerations ?? []).some((toleration) => tolerates(toleration, one)))
    return taint ? { cluster, fits: false, why: `${taint.key}:${taint.effect}` } : { cluster, fits: true }
  })
}

function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false
  if (!toleration.key) return toleration.operator === 'Exists'
  return toleration.key === taint.key && (toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? ''))
}

/** One line about where a policy puts things. */
export function placementText(placement: Placement): string {
  const parts: string[] = []
  const affinity = placement?.clusterAffinity
  if (placement?.clusterAffinities?.length) parts.push(placement.clusterAffinities.map((term) => term.affinityName).join(' → '))
  if (affinity?.clusterNames?.length) parts.push(affinity.clusterNames.join(', '))
  if (affinity?.labelSelector) parts.push(Object.entries(affinity.labelSelector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`).join(','))
  if (affinity?.exclude?.length) parts.push(`− ${affinity.exclude.join(', ')}`)
  for (const one of placement?.spreadConstraints ?? []) parts.push(`${one.spreadByField ?? one.spreadByLabel} ${one.minGroups ?? 1}–${one.maxGroups ?? '∞'}`)
  return parts.filter(Boolean).join(' · ')
}

export function selectorText(selector: Selector): string {
  if (selector.name) return `${selector.kind} ${selector.name}`
  const labels = Object.entries(selector.labelSelector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  return `${selector.kind} ${labels.join(',') || '*'}`
}

/** The bindings a propagation policy claimed. */
export function claimedBy(policy: Of<'PropagationPolicy'>, bindings: Of<'ResourceBinding'>[]): Of<'ResourceBinding'>[] {
  const { name, namespace } = policy.metadata
  return bindings.filter(({ metadata: { annotations = {} } }) =>
    namespace
      ? annotations['propagationpolicy.karmada.io/name'] === name && annotations['propagationpolicy.karmada.io/namespace'] === namespace
      : annotations['clusterpropagationpolicy.karmada.io/name'] === name,
  )
}

/** The bindings an override policy changes something for. */
export function overriddenBy(policy: Of<'OverridePolicy'>, bindings: Of<'ResourceBinding'>[]): Of<'ResourceBinding'>[] {
  const selectors = policy.spec?.resourceSelectors ?? []
  return bindings.filter((binding) => {
    const reference = binding.spec?.resource
    if (policy.metadata.namespace && binding.metadata.namespace !== policy.metadata.namespace) return false
    if (selectors.length === 0) return true
    return selectors.some((selector) => selector.apiVersion === reference?.apiVersion && selector.kind === reference?.kind && (!selector.name || selector.name === reference?.name))
  })
}
