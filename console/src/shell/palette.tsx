// Ctrl-K: the way to every page, kind, cluster and object, without the mouse.

import { Box, Globe2, LayoutGrid, Search, Server, SquareArrowOutUpRight } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useKinds } from '../api/discovery'
import { useFetched, useList } from '../api/hooks'
import { findObjects, type Hit } from '../api/index-search'
import { CLUSTERS } from '../api/paths'
import { t, type Word } from '../i18n'
import { useInstances } from '../instances'
import { clusterLink, instanceLink, listLink, objectLink } from '../model/links'
import { rank } from '../model/rank'
import { Cut } from '../ui/parts'

interface Choice {
  id: string
  group: string
  text: string
  where?: string
  also?: string[]
  icon: ReactNode
  href: string
}

const PAGES: [string, Word][] = [
  ['', 'nav.overview'], ['clusters', 'nav.clusters'], ['r/apps/v1/deployments', 'nav.workloads'], ['r/core/v1/services', 'nav.network'], ['r/core/v1/configmaps', 'nav.config'],
  ['propagation', 'nav.propagation'], ['policies', 'nav.policies'], ['nodes', 'nav.nodes'], ['search', 'nav.search'], ['activity', 'nav.activity'], ['access', 'nav.access'], ['settings', 'nav.isettings'], ['kinds', 'nav.kinds'],
]
const icon = { size: 15, 'aria-hidden': true } as const
const MOST = 8

export function Palette({ instance, onClose }: { instance?: string; onClose: () => void }) {
  const [, go] = useLocation()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const dialog = useRef<HTMLDialogElement>(null)
  const words = text.replace(/^:/, '').trim()
  const fixed = useFixedChoices(instance)
  const objects = useObjectChoices(instance, words)
  const choices = useMemo(() => grouped([...rank(fixed, words, MOST), ...objects.choices]), [fixed, words, objects.choices])
  const here = Math.min(at, Math.max(0, choices.length - 1))
  useEffect(() => {
    const shown = dialog.current
    if (shown && !shown.open) shown.showModal()
    return () => shown?.close()
  }, [])
  useEffect(() => {
    dialog.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [here])
  const open = (choice: Choice | undefined) => {
    if (!choice) return
    onClose()
    go(choice.href)
  }
  const press = (event: KeyboardEvent) => {
    event.stopPropagation()
    if (event.key === 'ArrowDown') setAt((here + 1) % Math.max(1, choices.length))
    else if (event.key === 'ArrowUp') setAt((here - 1 + choices.length) % Math.max(1, choices.length))
    else if (event.key === 'Enter') open(choices[here])
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} className="palette" aria-label={t('palette.open')} onCancel={onClose} onClick={(event) => event.target === dialog.current && onClose()} onKeyDown={press}>
      <div className="ask">
        <Search size={17} aria-hidden="true" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-found"
          aria-activedescendant={choices[here] ? `hit-${here}` : undefined}
          aria-label={t('palette.open')}
          placeholder={t('palette.placeholder')}
          value={text}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
        />
        {objects.busy && <span className="tiny">{t('palette.searching')}</span>}
      </div>
      <div className="found" role="listbox" id="palette-found" aria-label={t('palette.open')}>
        {choices.map((choice, index) => (
          <div key={choice.id} style={{ display: 'contents' }} role="presentation">
            {choices[index - 1]?.group !== choice.group && (
              <div className="group" role="presentation">
                {choice.group}
              </div>
            )}
            <div className="hit" id={`hit-${index}`} role="option" aria-selected={index === here} onClick={() => open(choice)} onPointerMove={() => setAt(index)}>
              {choice.icon}
              <Cut>{choice.text}</Cut>
              {choice.where && <Cut className="where">{choice.where}</Cut>}
            </div>
          </div>
        ))}
        {choices.length === 0 && (
          <div className="empty" role="option" aria-selected="false" aria-disabled="true">
            {objects.busy ? t('palette.searching') : t('palette.nothing')}
          </div>
        )}
      </div>
      <div className="keys">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> {t('palette.move')}
        </span>
        <span>
          <kbd>Enter</kbd> {t('palette.enter')}
        </span>
        <span>
          <kbd>Esc</kbd> {t('close')}
        </span>
      </div>
    </dialog>
  )
}

function useFixedChoices(instance: string | undefined): Choice[] {
  const instances = useInstances()
  const kinds = useKinds(instance ? { instance } : null)
  const hasClusters = kinds.value?.some((kind) => kind.plural === CLUSTERS.plural && kind.group === CLUSTERS.group)
  const clusters = useList(instance && hasClusters ? { instance } : null, CLUSTERS)
  return useMemo(() => {
    const out: Choice[] = []
    if (instance) {
      for (const [page, word] of PAGES) out.push({ id: `p${page}`, group: t('palette.pages'), text: t(word), icon: <SquareArrowOutUpRight {...icon} />, href: instanceLink(instance, page) })
    }
    out.push({ id: 'home', group: t('palette.pages'), text: t('nav.home'), icon: <SquareArrowOutUpRight {...icon} />, href: '/' })
    out.push({ id: 'settings', group: t('palette.pages'), text: t('nav.settings'), icon: <SquareArrowOutUpRight {...icon} />, href: '/settings' })
    for (const one of instances.items) {
      out.push({ id: `i${one.metadata.name}`, group: t('palette.instances'), text: one.metadata.name, where: one.spec?.alias, icon: <Server {...icon} />, href: instanceLink(one.metadata.name) })
    }
    for (const cluster of clusters.items) {
      out.push({ id: `c${cluster.metadata.name}`, group: t('palette.clusters'), text: cluster.metadata.name, where: cluster.spec?.region, icon: <Globe2 {...icon} />, href: clusterLink(instance ?? '', cluster.metadata.name) })
    }
    for (const kind of kinds.value ?? []) {
      if (!instance || !kind.verbs.includes('list')) continue
      out.push({
        id: `k${kind.group}/${kind.plural}`, group: t('palette.kinds'), text: kind.kind, where: kind.group || 'core', also: [kind.plural, ...kind.shortNames],
        icon: <LayoutGrid {...icon} />, href: listLink({ instance }, kind),
      })
    }
    return out
  }, [instance, instances.items, clusters.items, kinds.value])
}

function useObjectChoices(instance: string | undefined, words: string): { choices: Choice[]; busy: boolean } {
  const [settled, setSettled] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSettled(words), 160)
    return () => clearTimeout(timer)
  }, [words])
  const asked = instance && settled.length >= 2 ? settled : null
  const found = useFetched<Hit[]>(asked && `${instance} ${asked}`, (signal) => findObjects({ instance: instance ?? '' }, asked ?? '', signal))
  const choices = useMemo(() => (found.value ?? []).map(choiceOf), [found.value])
  return { choices, busy: words.length >= 2 && instance !== undefined && (found.loading || settled !== words) }
}

function choiceOf(hit: Hit): Choice {
  const { namespace, name, uid } = hit.object.metadata
  return {
    id: `o${hit.place.member ?? ''}/${uid ?? `${hit.kind}/${namespace}/${name}`}`,
    group: t('palette.objects'),
    text: namespace ? `${namespace}/${name}` : name,
    where: [hit.kind, hit.place.member].filter(Boolean).join(' · '),
    icon: <Box {...icon} />,
    href: objectLink(hit.place, hit.resource, namespace, name),
  }
}

/** Choices of one group together, in the order in which groups come first. */
function grouped(choices: Choice[]): Choice[] {
  const groups = [...new Set(choices.map((choice) => choice.group))]
  return groups.flatMap((group) => choices.filter((choice) => choice.group === group))
}
