// Objects by name, in the instance and all of its members.

import { ScanSearch, Search as SearchIcon } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useFetched } from '../api/hooks'
import { findObjects, hasIndex } from '../api/index-search'
import { t } from '../i18n'
import { objectLink } from '../model/links'
import { useHere } from '../place'
import { Age, Bones, Empty, Failure, Notice } from '../ui/parts'

export default function Search() {
  const { place, kinds } = useHere()
  const [query, setQuery] = useSearchParams()
  const asked = query.get('q') ?? ''
  const [text, setText] = useState(asked)
  useEffect(() => {
    const timer = setTimeout(() => setQuery(text ? { q: text } : {}, { replace: true }), 200)
    return () => clearTimeout(timer)
  }, [text, setQuery])
  const found = useFetched(asked.length >= 2 ? `${place.instance} ${asked}` : null, (signal) => findObjects(place, asked, signal))
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.search')}</h1>
      </div>
      <div className="search big">
        <SearchIcon size={16} aria-hidden="true" />
        <input className="input" data-filter autoFocus placeholder={t('search.placeholder')} aria-label={t('search.placeholder')} value={text} onChange={(event) => setText(event.target.value)} />
      </div>
      {kinds && !hasIndex(kinds) && <Notice tone="idle" title={t('search.noindex')}>{t('search.noindex.detail')}</Notice>}
      {found.error && <Failure error={found.error} again={found.again} />}
      {found.loading && <Bones lines={5} />}
      {asked.length < 2 && (
        <Empty icon={<ScanSearch size={34} aria-hidden="true" />} title={t('search.start')}>
          {t('search.start.detail')}
        </Empty>
      )}
      {found.value && found.value.length === 0 && <Empty title={t('search.nothing', { text: asked })} />}
      {found.value && found.value.length > 0 && (
        <div className="panel scroll-x">
          <table className="plain-table">
            <thead>
              <tr>
                <th>{t('name')}</th>
                <th>{t('kind')}</th>
                <th>{t('namespace')}</th>
                <th>{t('where')}</th>
                <th>{t('age')}</th>
              </tr>
            </thead>
            <tbody>
              {found.value.map((hit) => {
                const { name, namespace, uid, creationTimestamp } = hit.object.metadata
                return (
                  <tr key={`${hit.place.member}/${uid ?? name}`}>
                    <td>
                      <Link className="strong breaks" href={objectLink(hit.place, hit.resource, namespace, name)}>
                        {name}
                      </Link>
                    </td>
                    <td>{hit.kind}</td>
                    <td>{namespace ?? '—'}</td>
                    <td>{hit.place.member ?? t('where.templates')}</td>
                    <td>
                      <Age since={creationTimestamp} />
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}
