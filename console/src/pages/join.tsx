// How a cluster becomes a member: by commands, so that its credentials stay on the machine that has them, or by a
// kubeconfig with a token that is pasted here.

import { useState } from 'react'
import { ApiError, call } from '../api/http'
import { CLUSTERS, NAMESPACES, path, res } from '../api/paths'
import type { Objects } from '../api/generated'
import { t, type Word } from '../i18n'
import { joinCommands } from '../model/commands'
import { type Credentials, readKubeconfig } from '../model/kubeconfig'
import { Dialog } from '../ui/dialog'
import { Copyable } from '../ui/copy'
import { Button, Failure, Field, Notice, Segments } from '../ui/parts'
import { toast } from '../ui/toast'

type Way = 'push' | 'pull' | 'paste'

const SECRETS = res('', 'v1', 'secrets')
const HOME = 'karmada-cluster'

export function JoinDialog({ instance, onClose }: { instance: string; onClose: () => void }) {
  const [way, setWay] = useState<Way>('push')
  const [name, setName] = useState('')
  const commands = joinCommands(name || 'NAME', instance, `${location.origin}${instance === 'root' ? '' : `/instances/${instance}`}`)
  return (
    <Dialog title={t('clusters.join')} onClose={onClose} footer={<Button onClick={onClose}>{t('close')}</Button>}>
      <div className="stack">
        <Field label={t('join.name')}>{(id) => <input id={id} className="input" value={name} onChange={(event) => setName(event.target.value.replace(/[^a-z0-9.-]/g, ''))} placeholder="prod-eu" autoFocus />}</Field>
        <Segments<Way> label={t('mode')} value={way} onChange={setWay} options={[{ value: 'push', text: t('join.push') }, { value: 'pull', text: t('join.pull') }, { value: 'paste', text: t('join.paste') }]} />
        <p className="small muted">{t(`join.${way}.detail` as Word)}</p>
        {way === 'push' && <Copyable text={commands.push} />}
        {way === 'pull' && (
          <>
            <span className="small strong">{t('join.invite')}</span>
            <Copyable text={commands.invite} />
            <span className="small strong">{t('join.agent')}</span>
            <Copyable text={commands.agent} />
          </>
        )}
        {way === 'paste' && <Paste instance={instance} name={name} onDone={onClose} />}
        <p className="small muted">{t('join.after')}</p>
      </div>
    </Dialog>
  )
}

function Paste({ instance, name, onDone }: { instance: string; name: string; onDone: () => void }) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const [busy, setBusy] = useState(false)
  const join = async () => {
    setProblem(null)
    setError(null)
    const { parse } = await import('yaml')
    const reading = readKubeconfig(safely(() => parse(text)))
    if ('problem' in reading) return setProblem(t(`join.paste.${reading.problem}` as Word))
    setBusy(true)
    try {
      await register(instance, name, reading.found)
      toast('ok', t('join.joined', { name }))
      onDone()
    } catch (failure) {
      setError(ApiError.of(failure))
      setBusy(false)
    }
  }
  return (
    <>
      {problem && <Notice tone="bad" title={problem} />}
      {error && <Failure error={error} />}
      <Field label={t('join.paste.kubeconfig')}>{(id) => <textarea id={id} className="input mono" rows={7} spellCheck={false} autoComplete="off" value={text} onChange={(event) => setText(event.target.value)} />}</Field>
      <div>
        <Button look="primary" disabled={!name || !text.trim() || busy} onClick={join}>
          {t('clusters.join')}
        </Button>
      </div>
    </>
  )
}

function safely<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

/** The token goes into a Secret, the cluster names it; without the cluster the Secret is of no use to anybody. */
async function register(instance: string, name: string, { server, ca, token }: Credentials): Promise<void> {
  const place = { instance }
  const secretRef = { namespace: HOME, name }
  const secret = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name, namespace: HOME }, stringData: { token }, ...(ca && { data: { caBundle: ca } }) }
  const cluster = { apiVersion: 'cluster.karmada.io/v1alpha1', kind: 'Cluster', metadata: { name }, spec: { syncMode: 'Push', apiEndpoint: server, secretRef, impersonatorSecretRef: secretRef } } satisfies Objects['Cluster']
  // There by the time the first cluster has joined; whether one may make it is not the question here.
  await call(path(place, NAMESPACES), { method: 'POST', body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: HOME } } }).catch(() => {})
  await call(path(place, SECRETS, { namespace: HOME }), { method: 'POST', body: secret })
  try {
    await call(path(place, CLUSTERS), { method: 'POST', body: cluster })
  } catch (failure) {
    await call(path(place, SECRETS, secretRef), { method: 'DELETE' }).catch(() => {})
    throw failure
  }
}
