// Kinds people look for, in the groups they expect them in.

import { type Resource, res } from '../api/paths'

export type Section = 'workloads' | 'network' | 'config' | 'storage' | 'access'

export const SECTIONS: Record<Section, Resource[]> = {
  workloads: [
    res('apps', 'v1', 'deployments'), res('apps', 'v1', 'statefulsets'), res('apps', 'v1', 'daemonsets'), res('batch', 'v1', 'jobs'),
    res('batch', 'v1', 'cronjobs'), res('', 'v1', 'pods'), res('apps', 'v1', 'replicasets'),
  ],
  network: [res('', 'v1', 'services'), res('networking.k8s.io', 'v1', 'ingresses'), res('discovery.k8s.io', 'v1', 'endpointslices'), res('networking.k8s.io', 'v1', 'networkpolicies')],
  config: [res('', 'v1', 'configmaps'), res('', 'v1', 'secrets'), res('', 'v1', 'namespaces'), res('', 'v1', 'resourcequotas')],
  storage: [res('', 'v1', 'persistentvolumeclaims'), res('', 'v1', 'persistentvolumes'), res('storage.k8s.io', 'v1', 'storageclasses')],
  access: [
    res('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings'), res('rbac.authorization.k8s.io', 'v1', 'rolebindings'),
    res('rbac.authorization.k8s.io', 'v1', 'clusterroles'), res('rbac.authorization.k8s.io', 'v1', 'roles'), res('', 'v1', 'serviceaccounts'),
  ],
}

export function sectionOf(resource: Resource): Section | undefined {
  const names = Object.keys(SECTIONS) as Section[]
  return names.find((name) => SECTIONS[name].some((one) => one.group === resource.group && one.plural === resource.plural))
}
