// The frame around every page: navigation, where one is, and the way to everywhere.

import { Keyboard, Languages, LogOut, Menu as Burger, Monitor, Moon, Search, Settings, Sun } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { call } from '../api/http'
import { useFetched } from '../api/hooks'
import type { SelfReview } from '../api/types'
import { keepLanguage, t, useLanguage } from '../i18n'
import { signOut } from '../session'
import { Dialog, Menu } from '../ui/dialog'
import { Button, Cut } from '../ui/parts'
import { setTheme, theme } from '../ui/theme'
import { Crumbs } from './crumbs'
import { Mark } from './mark'
import { Navigation } from './navigation'
import { Palette } from './palette'

export function Shell({ children }: { children: ReactNode }) {
  const [location, go] = useLocation()
  const [open, setOpen] = useState<'palette' | 'keys' | null>(null)
  const [drawer, setDrawer] = useState(false)
  const instance = /^\/i\/([^/?]+)/.exec(location)?.[1]
  const close = useCallback(() => setOpen(null), [])
  useEffect(() => setDrawer(false), [location])
  useKeys(go, instance, setOpen)
  return (
    <div className="shell">
      <a className="skip" href="#content" onClick={(event) => skip(event)}>
        {t('skip')}
      </a>
      <aside className={`side${drawer ? ' open' : ''}`}>
        <Link href="/" className="brand">
          <Mark size={26} /> Atoll
        </Link>
        <Navigation instance={instance && decodeURIComponent(instance)} />
        <Foot />
      </aside>
      <button type="button" className={`veil${drawer ? ' open' : ''}`} aria-label={t('close')} onClick={() => setDrawer(false)} />
      <div className="main">
        <header className="top">
          <Button look="bare icon" className="burger" aria-label={t('nav.open')} onClick={() => setDrawer(true)}>
            <Burger size={18} aria-hidden="true" />
          </Button>
          <Crumbs />
          <button type="button" className="jump end" onClick={() => setOpen('palette')} aria-keyshortcuts="Control+K">
            <Search size={14} aria-hidden="true" />
            <span>{t('palette.open')}</span>
            <kbd aria-hidden="true">Ctrl K</kbd>
          </button>
        </header>
        <main className="content" id="content" tabIndex={-1}>
          {children}
        </main>
      </div>
      {open === 'palette' && <Palette instance={instance && decodeURIComponent(instance)} onClose={close} />}
      {open === 'keys' && <Keys onClose={close} />}
    </div>
  )
}

function skip(event: { preventDefault: () => void }): void {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

function useKeys(go: (to: string) => void, instance: string | undefined, show: (what: 'palette' | 'keys') => void): void {
  useEffect(() => {
    let waiting = 0
    const pages: Record<string, string> = { o: '', c: '/clusters', w: '/r/apps/v1/deployments', p: '/propagation', l: '/policies', n: '/nodes', a: '/activity' }
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        return show('palette')
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (event.key === '?') return show('keys')
      if (event.key === ':') {
        event.preventDefault()
        return show('palette')
      }
      if (event.key === '/') {
        const filter = document.querySelector<HTMLInputElement>('[data-filter]')
        if (!filter) return
        event.preventDefault()
        return filter.focus()
      }
      if (event.key === 'g') {
        waiting = Date.now()
        return
      }
      if (Date.now() - waiting > 1200) return
      waiting = 0
      if (event.key === 'h') go('/')
      const page = pages[event.key]
      if (page !== undefined && instance) go(`/i/${instance}${page}`)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [go, instance, show])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) || target.closest('dialog, .term-panel, .code') !== null)
}

function Foot() {
  const language = useLanguage()
  const [, redraw] = useState(0)
  const who = useFetched('who', () =>
    call<SelfReview>('/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } }),
  )
  const name = who.value?.status?.userInfo?.username ?? ''
  const look = theme()
  const turn = () => {
    setTheme(look === 'system' ? 'light' : look === 'light' ? 'dark' : 'system')
    redraw((count) => count + 1)
  }
  const Icon = look === 'system' ? Monitor : look === 'light' ? Sun : Moon
  return (
    <div className="foot">
      <span className="who small row">
        <Cut>{name}</Cut>
      </span>
      <Button look="bare icon small" aria-label={`${t('theme')}: ${t(`theme.${look}`)}`} title={`${t('theme')}: ${t(`theme.${look}`)}`} onClick={turn}>
        <Icon size={15} aria-hidden="true" />
      </Button>
      <Button look="bare icon small" aria-label={language === 'en' ? '中文' : 'English'} title={language === 'en' ? '中文' : 'English'} onClick={() => keepLanguage(language === 'en' ? 'zh' : 'en')}>
        <Languages size={15} aria-hidden="true" />
      </Button>
      <UserMenu />
    </div>
  )
}

function UserMenu() {
  const [, go] = useLocation()
  return (
    <Menu label={t('user.menu')} look="bare icon small" className="up" button={<Settings size={15} aria-hidden="true" />}>
      <button type="button" role="menuitem" className="item" onClick={() => go('/settings')}>
        <Settings size={15} aria-hidden="true" /> {t('nav.settings')}
      </button>
      <button type="button" role="menuitem" className="item" onClick={() => dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))}>
        <Keyboard size={15} aria-hidden="true" /> {t('keys.title')}
      </button>
      <div className="apart" />
      <button type="button" role="menuitem" className="item" onClick={() => signOut()}>
        <LogOut size={15} aria-hidden="true" /> {t('signout')}
      </button>
    </Menu>
  )
}

function Keys({ onClose }: { onClose: () => void }) {
  const rows: [string[], string][] = [
    [['Ctrl', 'K'], t('keys.palette')], [[':'], t('keys.palette')], [['/'], t('keys.filter')], [['↑', '↓', 'j', 'k'], t('keys.rows')],
    [['g', 'h'], t('nav.home')], [['g', 'o'], t('nav.overview')], [['g', 'c'], t('nav.clusters')], [['g', 'w'], t('nav.workloads')],
    [['g', 'p'], t('nav.propagation')], [['g', 'l'], t('nav.policies')], [['g', 'n'], t('nav.nodes')], [['g', 'a'], t('nav.activity')], [['?'], t('keys.title')],
  ]
  return (
    <Dialog title={t('keys.title')} onClose={onClose}>
      <dl className="facts">
        {rows.map(([keys, text]) => (
          <div key={keys.join() + text} style={{ display: 'contents' }}>
            <dt className="row gap-4">
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

