// What the user may do here, and who was given what.

import { useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api/http'
import { useFetched, useList } from '../api/hooks'
import { base, res } from '../api/paths'
import type { KObject, Subject } from '../api/types'
import { t } from '../i18n'
import { listLink, objectLink } from '../model/links'
import { SECTIONS } from '../model/sections'
import { useHere } from '../place'
import { Bones, Cut, Empty, Failure, Panel, Tag } from '../ui/parts'
import { HubAccess } from './hub-access'
import { NamespacePicker } from './resources'

interface Rule {
  verbs: string[]
  apiGroups?: string[]
  resources?: string[]
  resourceNames?: string[]
}

const BINDINGS = res('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings')

export default function Access() {
  const { place } = useHere()
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.access')}</h1>
        <span className="end row wrap gap-12 small">
          {SECTIONS.access.map((resource) => (
            <Link key={resource.plural} href={listLink(place, resource)}>
              {resource.plural}
            </Link>
          ))}
        </span>
      </div>
      {place.instance === 'root' && <HubAccess />}
      <Mine />
      <Grants />
    </div>
  )
}

function Mine() {
  const { place } = useHere()
  const [namespace, setNamespace] = useState('default')
  const review = useFetched(`${place.instance} ${namespace}`, (signal) =>
    call<{ status?: { resourceRules?: Rule[] } }>(`${base(place)}/apis/authorization.k8s.io/v1/selfsubjectrulesreviews`, { method: 'POST', signal, body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } } }),
  )
  const rules = review.value?.status?.resourceRules ?? []
  return (
    <Panel title={t('access.mine')} flush tools={<NamespacePicker place={place} value={namespace} onChange={setNamespace} all={false} />}>
      {review.error ? (
        <div className="pad">
          <Failure error={review.error} />
        </div>
      ) : review.loading ? (
        <div className="pad">
          <Bones lines={4} />
        </div>
      ) : rules.length === 0 ? (
        <Empty title={t('access.nothing')} />
      ) : (
        <div className="scroll-x">
          <table className="plain-table">
            <thead>
              <tr>
                <th>{t('access.verbs')}</th>
                <th>{t('access.resources')}</th>
                <th>{t('access.groups')}</th>
                <th>{t('access.names')}</th>
              </tr>
            </thead>
            <tbody>
              {rules.slice(0, 60).map((rule, index) => (
                <tr key={index}>
                  <td>
                    <span className="row wrap gap-4">{words(rule.verbs)}</span>
                  </td>
                  <td className="breaks">{(rule.resources ?? []).join(', ')}</td>
                  <td className="breaks muted">{(rule.apiGroups ?? []).map((group) => group || 'core').join(', ')}</td>
                  <td className="breaks muted">{(rule.resourceNames ?? []).join(', ') || '—'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

function words(list: string[] = []) {
  return list.map((word) => <Tag key={word}>{word}</Tag>)
}

function Grants() {
  const { place } = useHere()
  const bindings = useList(place, BINDINGS)
  const people = bindings.items.filter((binding) => !binding.metadata.name.startsWith('system:'))
  return (
    <Panel title={t('access.grants')} tools={<span className="count">{people.length}</span>} flush>
      {bindings.error ? (
        <div className="pad">
          <Failure error={bindings.error} />
        </div>
      ) : !bindings.loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : people.length === 0 ? (
        <Empty title={t('access.grants.none')} />
      ) : (
        <ul className="lines">
          {people.map((binding) => (
            <Grant key={binding.metadata.uid} binding={binding} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Grant({ binding }: { binding: KObject }) {
  const { place } = useHere()
  const subjects: Subject[] = binding.subjects ?? []
  return (
    <li>
      <Link className="strong cut" style={{ flex: '0 0 28%' }} href={objectLink(place, BINDINGS, undefined, binding.metadata.name)} title={binding.metadata.name}>
        {binding.metadata.name}
      </Link>
      <span className="row wrap gap-4 grow">
        {subjects.slice(0, 6).map((subject) => (
          <Tag key={`${subject.kind}${subject.namespace}${subject.name}`}>{`${subject.kind} ${subject.namespace ? `${subject.namespace}/` : ''}${subject.name}`}</Tag>
        ))}
      </span>
      <Cut className="muted small">{binding.roleRef?.name ?? ''}</Cut>
    </li>
  )
}
