// The fields of a new object.

import { Plus, Trash2 } from 'lucide-react'
import { t } from '../i18n'
import { type Filled, type FormField, type ObjectForm, type Pair, wrong } from '../model/forms'
import { Button, Field } from '../ui/parts'

interface Props {
  form: ObjectForm
  filled: Filled
  onChange: (filled: Filled) => void
}

export function ObjectFields({ form, filled, onChange }: Props) {
  const bad = wrong(form, filled)
  const set = (key: string, value: string) => onChange({ ...filled, text: { ...filled.text, [key]: value } })
  const one = (field: FormField) => <Input key={field.key} field={field} value={filled.text[field.key] ?? ''} bad={bad.includes(field.key)} onChange={(value) => set(field.key, value)} />
  return (
    <div className="stack loose">
      <div className="grid two">{form.fields.filter((field) => !field.wide).map(one)}</div>
      {form.fields.filter((field) => field.wide).map(one)}
      {form.pairs && <Pairs about={form.pairs} list={filled.pairs} onChange={(pairs) => onChange({ ...filled, pairs })} />}
    </div>
  )
}

function Input({ field, value, bad, onChange }: { field: FormField; value: string; bad: boolean; onChange: (value: string) => void }) {
  return (
    <Field label={t(field.label)} hint={field.hint && t(field.hint)}>
      {(id) =>
        field.options ? (
          <select id={id} className="select" value={value} onChange={(event) => onChange(event.target.value)}>
            {field.options.map((option) => (
              <option key={option}>{option}</option>
            ))}
          </select>
        ) : (
          <input id={id} className="input" value={value} placeholder={field.placeholder} autoFocus={field.key === 'name'} spellCheck={false} autoComplete="off" autoCapitalize="none" aria-invalid={value !== '' && bad} onChange={(event) => onChange(event.target.value)} />
        )
      }
    </Field>
  )
}

function Pairs({ about, list, onChange }: { about: NonNullable<ObjectForm['pairs']>; list: Pair[]; onChange: (list: Pair[]) => void }) {
  const change = (at: number, part: Partial<Pair>) => onChange(list.map((one, index) => (index === at ? { ...one, ...part } : one)))
  return (
    <fieldset className="stack">
      <legend>{t(about.label)}</legend>
      {list.map((one, at) => (
        // Rows have nothing but their place to be told apart by.
        <div className="row" key={at}>
          <input className="input mono grow" aria-label={t('name')} placeholder={about.placeholder} spellCheck={false} value={one.name} aria-invalid={one.name !== '' && !about.fits.test(one.name)} onChange={(event) => change(at, { name: event.target.value })} />
          <input className="input mono grow" aria-label={t('workload.value')} spellCheck={false} value={one.value} onChange={(event) => change(at, { value: event.target.value })} />
          <Button look="icon" aria-label={t('remove')} title={t('remove')} onClick={() => onChange(list.filter((_, index) => index !== at))}>
            <Trash2 size={14} aria-hidden="true" />
          </Button>
        </div>
      ))}
      <div>
        <Button look="small" onClick={() => onChange([...list, { name: '', value: '' }])}>
          <Plus size={14} aria-hidden="true" /> {t(about.add)}
        </Button>
      </div>
    </fieldset>
  )
}
