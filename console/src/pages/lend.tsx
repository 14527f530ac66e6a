// Lends a share of a worker cluster's nodes, always or in a window, and takes it back.

import { type FormEvent, useState } from 'react'
import type { Objects } from '../api/generated'
import { ApiError, call } from '../api/http'
import { LEASES, path, type Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { Dialog, RetypeDialog } from '../ui/dialog'
import { Button, Failure, Field } from '../ui/parts'
import { toast, toastError } from '../ui/toast'

const WEEK = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']

/** `lenders` are clusters of this hub that are bound to the borrower. */
export function LendDialog({ lenders, onClose }: { lenders: string[]; onClose: () => void }) {
  const [lender, setLender] = useState(lenders[0] ?? '')
  const [name, setName] = useState('')
  const [cpu, setCpu] = useState(50)
  const [memory, setMemory] = useState(50)
  const [node, setNode] = useState('')
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [error, setError] = useState<ApiError | null>(null)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    const policy = {
      apiVersion: 'cloud.tencent.com/v1beta1',
      kind: 'ResourceLeasingPolicy',
      metadata: { name },
      spec: {
        cluster: lender,
        resourceLimits: [{ resource: 'cpu', percent: cpu }, { resource: 'memory', percent: memory }],
        ...(node && { nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }] } }),
        ...(from && to && { timeWindows: [{ start: from, end: to, days: WEEK }] }),
      },
    }
    try {
      await call(path({ instance: lender }, LEASES, {}, { fieldValidation: 'Strict' }), { method: 'POST', body: policy satisfies Objects['ResourceLeasingPolicy'] | object })
      toast('ok', t('lend.done', { name }))
      onClose()
    } catch (failure) {
      setError(ApiError.of(failure))
    }
  }
  return (
    <Dialog
      title={t('lend.new')}
      onClose={onClose}
      decide={
        <Button look="primary" type="submit" form="lend" disabled={!name || !lender}>
          {t('lend.go')}
        </Button>
      }
    >
      <form id="lend" className="stack" onSubmit={submit}>
        {error && <Failure error={error} />}
        <p className="small muted">{t('lend.detail')}</p>
        <div className="grid two">
          <Field label={t('lend.lender')}>
            {(id) => (
              <select id={id} className="select" value={lender} onChange={(event) => setLender(event.target.value)}>
                {lenders.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label={t('name')}>{(id) => <input id={id} className="input" value={name} spellCheck={false} onChange={(event) => setName(event.target.value.replace(/[^a-z0-9.-]/g, ''))} autoFocus />}</Field>
          <Percent label={t('lend.cpu')} value={cpu} onChange={setCpu} />
          <Percent label={t('lend.memory')} value={memory} onChange={setMemory} />
          <Field label={t('lend.from')} hint={t('lend.window.hint')}>{(id) => <input id={id} type="time" className="input" value={from} onChange={(event) => setFrom(event.target.value)} />}</Field>
          <Field label={t('lend.to')}>{(id) => <input id={id} type="time" className="input" value={to} onChange={(event) => setTo(event.target.value)} />}</Field>
          <Field label={t('lend.node')} hint={t('lend.node.hint')}>{(id) => <input id={id} className="input" value={node} spellCheck={false} onChange={(event) => setNode(event.target.value.trim())} />}</Field>
        </div>
      </form>
    </Dialog>
  )
}

function Percent({ label, value, onChange }: { label: string; value: number; onChange: (value: number) => void }) {
  return <Field label={label}>{(id) => <input id={id} type="number" min={0} max={100} className="input" value={value} onChange={(event) => onChange(Math.max(0, Math.min(100, Math.trunc(Number(event.target.value)))))} />}</Field>
}

/** Ends a policy: what it lent is taken back, gracefully unless the policy says otherwise. */
export function ReclaimDialog({ policy, place, onClose }: { policy: KObject; place: Place; onClose: () => void }) {
  const { name } = policy.metadata
  const reclaim = async () => {
    try {
      await call(path(place, LEASES, { name }), { method: 'DELETE' })
      toast('ok', t('lend.reclaiming', { name }))
      onClose()
    } catch (failure) {
      toastError(t('lend.failed'), failure)
    }
  }
  return (
    <RetypeDialog title={t('lend.reclaim.title', { name })} name={name} verb={t('lend.reclaim')} onClose={onClose} onConfirm={reclaim}>
      <p>{t('lend.reclaim.detail')}</p>
    </RetypeDialog>
  )
}
