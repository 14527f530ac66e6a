// Dialogs, drawers and menus: the browser's own dialog keeps focus and answers Escape.

import { X } from 'lucide-react'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { t } from '../i18n'
import { Button } from './parts'

interface DialogProps {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  footer?: ReactNode
  /** Instead of a footer: what decides, beside a button to cancel. */
  decide?: ReactNode
  look?: 'wide' | 'drawer'
  tools?: ReactNode
}

export function Dialog({ title, onClose, children, footer, decide, look, tools }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    if (dialog && !dialog.open) dialog.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      className={look}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => event.target === ref.current && onClose()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header>
        <h2 id={id} className="grow row">
          {title}
        </h2>
        {tools}
        <Button look="bare icon" aria-label={t('close')} onClick={onClose}>
          <X size={17} aria-hidden="true" />
        </Button>
      </header>
      <div className="body">{children}</div>
      {footer && <footer>{footer}</footer>}
      {decide && (
        <footer>
          <Button onClick={onClose}>{t('cancel')}</Button>
          {decide}
        </footer>
      )}
    </dialog>
  )
}

interface MenuProps {
  label: string
  button: ReactNode
  children: ReactNode
  align?: 'left' | 'right'
  className?: string
  look?: string
}

export function Menu({ label, button, children, align = 'right', className = '', look = 'icon' }: MenuProps) {
  const [open, setOpen] = useState(false)
  const ref = useRef<HTMLDivElement>(null)
  const trigger = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (!open) return
    items(ref.current)[0]?.focus()
    const outside = (event: PointerEvent) => !ref.current?.contains(event.target as Node) && setOpen(false)
    addEventListener('pointerdown', outside)
    return () => removeEventListener('pointerdown', outside)
  }, [open])
  const close = () => {
    setOpen(false)
    trigger.current?.focus()
  }
  return (
    <div
      className={`menu ${className}`}
      ref={ref}
      onKeyDown={(event) => {
        if (!open) return
        if (event.key === 'Escape') {
          event.stopPropagation()
          close()
        }
        if (event.key === 'Tab') setOpen(false)
        if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
        event.preventDefault()
        const all = items(ref.current)
        const here = all.indexOf(document.activeElement as HTMLElement)
        const next = (here + (event.key === 'ArrowDown' ? 1 : -1) + all.length) % all.length
        all[next]?.focus()
      }}
    >
      <button
        ref={trigger}
        type="button"
        className={look === 'plain' ? undefined : `button ${look}`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        title={look.includes('icon') ? label : undefined}
        onClick={() => setOpen(!open)}
      >
        {button}
      </button>
      {open && (
        <div className={`list ${align}`} role="menu" aria-label={label} onClick={(event) => (event.target as HTMLElement).closest('.item') && setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  )
}

function items(root: HTMLElement | null): HTMLElement[] {
  return [...(root?.querySelectorAll<HTMLElement>('.list .item') ?? [])]
}

/** Asks for the name to be typed before something is lost. */
export function RetypeDialog({ title, name, children, onConfirm, onClose, verb }: { title: string; name: string; children: ReactNode; onConfirm: () => void | Promise<void>; onClose: () => void; verb: string }) {
  const [typed, setTyped] = useState('')
  const [busy, setBusy] = useState(false)
  const id = useId()
  const confirm = async () => {
    setBusy(true)
    await onConfirm()
    setBusy(false)
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      decide={
        <Button look="danger primary" disabled={typed !== name || busy} onClick={confirm}>
          {verb}
        </Button>
      }
    >
      <div className="stack">
        {children}
        <div className="field">
          <label htmlFor={id} className="breaks">
            {t('retype', { name })}
          </label>
          <input id={id} className="input" autoComplete="off" spellCheck={false} value={typed} onChange={(event) => setTyped(event.target.value)} onKeyDown={(event) => event.key === 'Enter' && typed === name && confirm()} />
        </div>
      </div>
    </Dialog>
  )
}
