// Template and members side by side: only what differs.

import { useMemo } from 'react'
import { call } from '../api/http'
import { useFetched, useList } from '../api/hooks'
import { BINDINGS, path, type Place, type Resource } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { differences } from '../model/differences'
import { objectLink } from '../model/links'
import { Link } from 'wouter'
import { useHere } from '../place'
import { AsOf, Bones, Button, Empty, Failure, Notice } from '../ui/parts'

const MOST = 12

interface Answers {
  there: { member: string; object: KObject }[]
  silent: string[]
  at: number
}

export default function Differences({ template, resource }: { template: KObject; resource: Resource }) {
  const { place } = useHere()
  const { namespace, name, uid } = template.metadata
  const bindings = useList(place, BINDINGS, { namespace })
  const binding = bindings.items.find((one) => one.spec?.resource?.name === name && one.spec.resource.kind === template.kind)
  const members: string[] = (binding?.spec?.clusters ?? []).map((one: { name: string }) => one.name)
  const shown = members.slice(0, MOST)
  const found = useFetched(bindings.loaded ? `differ ${uid} ${template.metadata.resourceVersion} ${shown.join()}` : null, (signal) => objectsOf(place, resource, shown, template, signal))
  const rows = useMemo(() => (found.value ? differences(template, found.value.there) : []), [template, found.value])
  if (bindings.error) return <Failure error={bindings.error} />
  if (!found.value) return <Bones lines={6} />
  if (members.length === 0) return <Empty title={t('differ.nowhere')} />
  return (
    <div className="stack">
      <div className="bar">
        <span className="small muted">{t('differ.about')}</span>
        <span className="end row">
          <AsOf at={found.value.at} live={false} />
          <Button look="small" onClick={found.again}>{t('refresh')}</Button>
        </span>
      </div>
      {found.value.silent.length > 0 && <Notice tone="warn" title={t('differ.silent', { where: found.value.silent.join(', ') })} />}
      {members.length > MOST && <Notice tone="idle" title={t('differ.most', { n: MOST, all: members.length })} />}
      {rows.length === 0 ? (
        <Empty title={t('differ.none')} />
      ) : (
        <div className="panel scroll-x">
          <table className="plain-table">
            <thead>
              <tr>
                <th>{t('differ.field')}</th>
                <th>{t('tree.template')}</th>
                {found.value.there.map(({ member }) => (
                  <th key={member}>
                    <Link href={objectLink({ instance: place.instance, member }, resource, namespace, name)}>{member}</Link>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.path}>
                  <td className="mono small breaks">{row.path}</td>
                  <td className="mono small breaks muted">{row.template ?? '—'}</td>
                  {found.value?.there.map(({ member }) => (
                    <td key={member} className={`mono small breaks${row.members[member] === row.template ? ' faint' : ' strong'}`}>
                      {row.members[member] ?? '—'}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}

async function objectsOf(place: Place, resource: Resource, members: string[], template: KObject, signal: AbortSignal): Promise<Answers> {
  const { namespace, name } = template.metadata
  const answers = await Promise.all(
    members.map((member) =>
      call<KObject>(path({ instance: place.instance, member }, resource, { namespace, name }), { signal }).then(
        (object) => ({ member, object }),
        () => ({ member, object: undefined }),
      ),
    ),
  )
  const there = answers.filter((one): one is { member: string; object: KObject } => one.object !== undefined)
  return { there, silent: answers.filter((one) => !one.object).map((one) => one.member), at: Date.now() }
}
