// The usual parts of a workload as fields.

import { Plus, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { t } from '../i18n'
import { type Workload, wrong } from '../model/workload'
import { Button, Field } from '../ui/parts'

interface Props {
  form: Workload
  kind: string
  onChange: (form: Workload) => void
}

export function WorkloadForm({ form, kind, onChange }: Props) {
  const bad = wrong(form)
  const set = (change: Partial<Workload>) => onChange({ ...form, ...change })
  const text = (key: 'name' | 'image' | 'port' | 'cpu' | 'memory' | 'command', label: string, hint?: string, more: object = {}): ReactNode => (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} className="input" value={form[key]} spellCheck={false} autoComplete="off" autoCapitalize="none" aria-invalid={form[key] !== '' && bad.includes(key)} onChange={(event) => set({ [key]: event.target.value })} {...more} />}
    </Field>
  )
  return (
    <div className="stack loose">
      <div className="grid two">
        {text('name', t('name'), t('home.create.name'), { autoFocus: true })}
        {text('image', t('workload.image'), undefined, { placeholder: 'nginx:1.29' })}
        {kind !== 'DaemonSet' && (
          <Field label={kind === 'Job' ? t('workload.completions') : t('workload.replicas')}>
            {(id) => <input id={id} type="number" min={0} className="input" value={form.replicas} onChange={(event) => set({ replicas: Math.trunc(Number(event.target.value)) })} />}
          </Field>
        )}
        {text('port', t('workload.port'), undefined, { inputMode: 'numeric', placeholder: '80' })}
        {text('cpu', t('workload.cpu'), t('workload.cpu.hint'))}
        {text('memory', t('workload.memory'), t('workload.memory.hint'))}
      </div>
      {text('command', t('workload.command'), t('workload.command.hint'))}
      <Environment list={form.env} onChange={(env) => set({ env })} />
    </div>
  )
}

function Environment({ list, onChange }: { list: Workload['env']; onChange: (list: Workload['env']) => void }) {
  const change = (at: number, part: Partial<Workload['env'][number]>) => onChange(list.map((one, index) => (index === at ? { ...one, ...part } : one)))
  return (
    <fieldset className="stack">
      <legend>{t('workload.env')}</legend>
      {list.map((one, at) => (
        // Rows have nothing but their place to be told apart by.
        <div className="row" key={at}>
          <input className="input mono grow" aria-label={t('name')} placeholder="NAME" spellCheck={false} value={one.name} onChange={(event) => change(at, { name: event.target.value })} />
          <input className="input mono grow" aria-label={t('workload.value')} spellCheck={false} value={one.value} onChange={(event) => change(at, { value: event.target.value })} />
          <Button look="icon" aria-label={t('remove')} title={t('remove')} onClick={() => onChange(list.filter((_, index) => index !== at))}>
            <Trash2 size={14} aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div>
        <Button look="small" onClick={() => onChange([...list, { name: '', value: '' }])}>
          <Plus size={14} aria-hidden="true" /> {t('workload.env.add')}
        </Button>
      </div>
    </fieldset>
  )
}
