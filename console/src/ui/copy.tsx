import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { t } from '../i18n'
import { Button } from './parts'

/** Text to be taken along. */
export function Copyable({ text }: { text: string }) {
  return (
    <div className="copyable">
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} />
    </div>
  )
}

export function CopyButton({ text }: { text: string }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <Button look="bare icon small" aria-label={t('copy')} title={t('copy')} onClick={copy}>
      {done ? <Check size={14} aria-hidden="true" /> : <Copy size={14} aria-hidden="true" />}
    </Button>
  )
}
