// Where one is, and the way back.

import { ChevronRight } from 'lucide-react'
import { Link, useLocation, useSearch } from 'wouter'
import { t, type Word } from '../i18n'
import { clusterLink, groupOf, instanceLink, listLink } from '../model/links'
import { Cut } from '../ui/parts'

interface Crumb {
  text: string
  href?: string
}

export function Crumbs() {
  const [location] = useLocation()
  const member = new URLSearchParams(useSearch()).get('m') ?? undefined
  const crumbs = crumbsOf(location, member)
  return (
    <nav aria-label={t('crumbs')} className="grow">
      <ol className="crumbs">
        {crumbs.map((crumb, index) => {
          const last = index === crumbs.length - 1
          return (
            <li key={`${index}${crumb.text}`}>
              {index > 0 && <ChevronRight size={13} aria-hidden="true" />}
              {crumb.href && !last ? (
                <Link href={crumb.href} className="cut" title={crumb.text}>
                  {crumb.text}
                </Link>
              ) : (
                <span aria-current={last ? 'page' : undefined} className="cut">
                  <Cut>{crumb.text}</Cut>
                </span>
              )}
            </li>
          )
        })}
      </ol>
    </nav>
  )
}

const PAGES: Record<string, Word> = {
  clusters: 'nav.clusters', kinds: 'nav.kinds', propagation: 'nav.propagation', policies: 'nav.policies', nodes: 'nav.nodes',
  search: 'nav.search', activity: 'nav.activity', access: 'nav.access', settings: 'nav.isettings',
}

function crumbsOf(location: string, member: string | undefined): Crumb[] {
  const parts = location.split('/').filter(Boolean).map(decodeURIComponent)
  if (parts[0] === 'settings') return [{ text: t('nav.settings') }]
  if (parts[0] !== 'i' || !parts[1]) return [{ text: t('nav.home') }]
  const instance = parts[1]
  const out: Crumb[] = [{ text: instance, href: instanceLink(instance) }]
  const page = parts[2]
  if (member) out.push({ text: t('nav.clusters'), href: instanceLink(instance, 'clusters') }, { text: member, href: clusterLink(instance, member) })
  if (page === 'r' || page === 'o') {
    const resource = { group: groupOf(parts[3] ?? ''), version: parts[4] ?? '', plural: parts[5] ?? '' }
    const namespace = parts[6] && parts[6] !== '-' ? parts[6] : undefined
    out.push({ text: resource.plural, href: listLink({ instance, member }, resource) })
    if (namespace) out.push({ text: namespace, href: listLink({ instance, member }, resource, { ns: namespace }) })
    if (parts[7]) out.push({ text: parts[7] })
    return out
  }
  const word = page ? PAGES[page] : undefined
  out.push({ text: word ? t(word) : t('nav.overview'), href: instanceLink(instance, page) })
  if (parts[3]) out.push({ text: parts[3] === 'new' ? t('create') : parts[3] === 'edit' ? (parts[6] ?? '') : parts[3] })
  return out
}
