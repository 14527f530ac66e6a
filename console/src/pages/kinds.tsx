// Every kind the instance serves.

import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import type { Kind } from '../api/discovery'
import { t } from '../i18n'
import { listLink } from '../model/links'
import { useHere } from '../place'
import { Bones, Empty, Failure, Filter } from '../ui/parts'

export default function Kinds() {
  const { place, kinds, error } = useHere()
  const [text, setText] = useState('')
  const groups = useMemo(() => grouped(kinds ?? [], text.toLowerCase()), [kinds, text])
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.kinds')}</h1>
        {kinds && <span className="count">{kinds.filter((kind) => kind.verbs.includes('list')).length}</span>}
      </div>
      <div className="bar">
        <Filter label={t('kinds.filter')} value={text} onChange={setText} />
      </div>
      {error && <Failure error={error} />}
      {!kinds && !error && <Bones lines={8} />}
      {kinds && groups.length === 0 && <Empty title={t('filter.nothing')} />}
      <div className="kind-groups">
        {groups.map(([group, list]) => (
          <section key={group} className="panel">
            <header>
              <h2 className="cut" title={group || 'core'}>
                {group || 'core'}
              </h2>
              <span className="count end">{list.length}</span>
            </header>
            <ul className="kind-list">
              {list.map((kind) => (
                <li key={kind.plural}>
                  <Link href={listLink(place, kind)} className="cut" title={`${kind.plural}.${kind.version}`}>
                    {kind.kind}
                  </Link>
                  <span className="tiny faint unbroken">{[...kind.shortNames, kind.namespaced ? '' : t('kinds.global')].filter(Boolean).join(' · ')}</span>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  )
}

function grouped(kinds: Kind[], text: string): [string, Kind[]][] {
  const groups = new Map<string, Kind[]>()
  for (const kind of kinds) {
    if (!kind.verbs.includes('list')) continue
    if (text && ![kind.kind, kind.plural, kind.group, ...kind.shortNames].some((word) => word.toLowerCase().includes(text))) continue
    groups.set(kind.group, [...(groups.get(kind.group) ?? []), kind])
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b))
}
