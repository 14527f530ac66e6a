// How the console looks, who is signed in, and how the hub is.

import { useState } from 'react'
import { call, open } from '../api/http'
import { useFetched } from '../api/hooks'
import type { SelfReview } from '../api/types'
import { keepLanguage, type Language, t, useLanguage } from '../i18n'
import { signOut } from '../session'
import { Bones, Button, Failure, Panel, Pill, Segments, Tag } from '../ui/parts'
import { setTheme, type Theme, theme } from '../ui/theme'

export default function Settings() {
  return (
    <div className="page">
      <div className="title">
        <h1>{t('nav.settings')}</h1>
      </div>
      <div className="grid two">
        <Looks />
        <Who />
        <Hub />
      </div>
    </div>
  )
}

function Looks() {
  const language = useLanguage()
  const [look, setLook] = useState<Theme>(theme())
  return (
    <Panel title={t('settings.looks')}>
      <dl className="facts roomy">
        <dt>{t('theme')}</dt>
        <dd>
          <Segments<Theme>
            label={t('theme')}
            value={look}
            onChange={(next) => {
              setTheme(next)
              setLook(next)
            }}
            options={[{ value: 'system', text: t('theme.system') }, { value: 'light', text: t('theme.light') }, { value: 'dark', text: t('theme.dark') }]}
          />
        </dd>
        <dt>{t('language')}</dt>
        <dd>
          <Segments<Language> label={t('language')} value={language} onChange={keepLanguage} options={[{ value: 'en', text: 'English' }, { value: 'zh', text: '中文' }]} />
        </dd>
      </dl>
    </Panel>
  )
}

function Who() {
  const who = useFetched('settings-who', () => call<SelfReview>('/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' } }))
  const info = who.value?.status?.userInfo
  return (
    <Panel
      title={t('settings.who')}
      tools={
        <Button look="small" onClick={() => signOut()}>
          {t('signout')}
        </Button>
      }
    >
      {who.error && <Failure error={who.error} />}
      {!info && !who.error && <Bones />}
      {info && (
        <dl className="facts">
          <dt>{t('name')}</dt>
          <dd className="mono">{info.username}</dd>
          <dt>{t('settings.groups')}</dt>
          <dd className="row wrap gap-4">
            {(info.groups ?? []).map((group: string) => (
              <Tag key={group}>{group}</Tag>
            ))}
          </dd>
        </dl>
      )}
      <p className="small muted">{t('settings.token')}</p>
    </Panel>
  )
}

function Hub() {
  const version = useFetched('settings-version', () => call<{ gitVersion?: string; platform?: string }>('/version'))
  const health = useFetched('settings-health', async () => (await open('/readyz?verbose', { accept: '*/*' })).text())
  const checks = (health.value ?? '').split('\n').filter((line) => /^\[[+-]\]/.test(line))
  return (
    <Panel title={t('settings.hub')}>
      <dl className="facts">
        <dt>{t('version')}</dt>
        <dd className="mono">{version.value?.gitVersion ?? '—'}</dd>
        <dt>{t('settings.address')}</dt>
        <dd className="mono">{location.origin}</dd>
        <dt>{t('status')}</dt>
        <dd className="row wrap gap-4">
          {health.error && <Pill tone="bad">{health.error.message}</Pill>}
          {health.value !== undefined && checks.length === 0 && <Pill tone="ok">{health.value.trim().slice(0, 40) || 'ok'}</Pill>}
          {checks.map((line) => (
            <Pill key={line} tone={line.startsWith('[+]') ? 'ok' : 'bad'}>
              {line.slice(3).replace(/ ok$/, '')}
            </Pill>
          ))}
        </dd>
      </dl>
    </Panel>
  )
}
