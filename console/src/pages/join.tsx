// How a cluster becomes a member. The credentials of the cluster stay on the machine that has them.

import { useState } from 'react'
import { t } from '../i18n'
import { joinCommands } from '../model/commands'
import { Dialog } from '../ui/dialog'
import { Copyable } from '../ui/copy'
import { Button, Field, Segments } from '../ui/parts'

export function JoinDialog({ instance, onClose }: { instance: string; onClose: () => void }) {
  const [mode, setMode] = useState<'push' | 'pull'>('push')
  const [name, setName] = useState('')
  const commands = joinCommands(name || 'NAME', instance, `${location.origin}${instance === 'root' ? '' : `/instances/${instance}`}`)
  return (
    <Dialog title={t('clusters.join')} onClose={onClose} footer={<Button onClick={onClose}>{t('close')}</Button>}>
      <div className="stack">
        <Field label={t('join.name')}>{(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value.replace(/[^a-z0-9.-]/g, ''))} placeholder="prod-eu" autoFocus />}</Field>
        <Segments label={t('mode')} value={mode} onChange={setMode} options={[{ value: 'push', text: t('join.push') }, { value: 'pull', text: t('join.pull') }]} />
        <p className="small muted">{mode === 'push' ? t('join.push.detail') : t('join.pull.detail')}</p>
        {mode === 'push' ? (
          <Copyable text={commands.push} />
        ) : (
          <>
            <span className="small strong">{t('join.invite')}</span>
            <Copyable text={commands.invite} />
            <span className="small strong">{t('join.agent')}</span>
            <Copyable text={commands.agent} />
          </>
        )}
        <p className="small muted">{t('join.after')}</p>
      </div>
    </Dialog>
  )
}
