// Who the hub knows: workspaces, accounts, and what was granted to whom.

import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { useMay } from '../api/access'
import { useList } from '../api/hooks'
import { res } from '../api/paths'
import type { KObject, Subject } from '../api/types'
import { t, type Word } from '../i18n'
import { listLink, objectLink } from '../model/links'
import { AsOf, Bones, Button, Cut, Empty, Failure, Panel, Pill, Tag } from '../ui/parts'
import { CreateButton } from './create'
import { GrantDialog } from './grant'

const ROOT = { instance: 'root' }
const KINDS = [
  { resource: res('atoll.io', 'v1alpha1', 'workspaces'), word: 'hub.workspaces', tells: tellWorkspace },
  { resource: res('atoll.io', 'v1alpha1', 'grants'), word: 'hub.grants', tells: tellGrant },
  { resource: res('atoll.io', 'v1alpha1', 'accounts'), word: 'hub.accounts', tells: tellAccount },
  { resource: res('atoll.io', 'v1alpha1', 'accessroles'), word: 'hub.roles', tells: tellRole },
] as const

export function HubAccess() {
  return (
    <div className="grid two">
      {KINDS.map((kind) => (
        <KindPanel key={kind.word} kind={kind} />
      ))}
    </div>
  )
}

function KindPanel({ kind }: { kind: (typeof KINDS)[number] }) {
  const list = useList(ROOT, kind.resource)
  return (
    <Panel
      title={t(kind.word)}
      flush
      tools={
        <>
          {kind.word === 'hub.grants' && <GrantButton />}
          {kind.word === 'hub.workspaces' && <CreateButton place={ROOT} resource={kind.resource} kind="Workspace" />}
          <AsOf at={list.at} live={list.live} />
          <Link className="small" href={listLink(ROOT, kind.resource)}>
            {t('open')}
          </Link>
        </>
      }
    >
      {list.error ? (
        <div className="pad">
          <Failure error={list.error} />
        </div>
      ) : !list.loaded ? (
        <div className="pad">
          <Bones />
        </div>
      ) : list.items.length === 0 ? (
        <Empty title={t(`${kind.word}.none` as Word)}>{t(`${kind.word}.how` as Word)}</Empty>
      ) : (
        <ul className="lines">
          {list.items.slice(0, 20).map((item) => (
            <li key={item.metadata.uid}>
              <Link className="strong cut" href={objectLink(ROOT, kind.resource, undefined, item.metadata.name)} title={item.metadata.name}>
                {item.metadata.name}
              </Link>
              <span className="row wrap gap-4 grow">{kind.tells(item)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function GrantButton() {
  const [open, setOpen] = useState(false)
  const may = useMay(ROOT, { verb: 'create', group: 'atoll.io', resource: 'grants' })
  if (!may) return null
  return (
    <>
      <Button look="small" onClick={() => setOpen(true)}>
        <Plus size={14} aria-hidden="true" /> {t('grant.new')}
      </Button>
      {open && <GrantDialog onClose={() => setOpen(false)} />}
    </>
  )
}

function tellWorkspace(item: KObject) {
  return <Cut className="muted small">{String(item.spec?.alias ?? '')}</Cut>
}

function tellGrant(item: KObject) {
  const subjects: Subject[] = item.spec?.subjects ?? []
  return (
    <>
      {subjects.slice(0, 5).map((subject) => (
        <Tag key={`${subject.kind}${subject.name}`}>{`${subject.kind} ${subject.name}`}</Tag>
      ))}
      <Cut className="muted small">{String(item.spec?.role ?? item.spec?.roleRef?.name ?? '')}</Cut>
    </>
  )
}

function tellAccount(item: KObject) {
  return (
    <>
      {item.spec?.disabled && <Pill tone="warn">{t('hub.closed')}</Pill>}
      {(item.spec?.groups ?? []).map((group: string) => (
        <Tag key={group}>{group}</Tag>
      ))}
    </>
  )
}

function tellRole(item: KObject) {
  return <Cut className="muted small">{String(item.spec?.description ?? '')}</Cut>
}
