// The editor. It lives in a shadow root, where its styles need no exception from the content policy.

import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, codeFolding, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { unifiedMergeView } from '@codemirror/merge'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useLayoutEffect, useRef } from 'react'
import type { Place } from '../api/paths'
import { changes } from '../model/changes'
import { assist } from './assist'

interface Props {
  value: string
  label: string
  onChange?: (value: string) => void
  onSave?: () => void
  /** Shows what differs from this. */
  original?: string
  height?: string
  /** Whose kinds it is about: they say what may be written. */
  place?: Place
}

/** Marks text that came from outside: nobody typed it, so it is no edit. */
const fromOutside = Annotation.define<boolean>()

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '12.5px', backgroundColor: 'var(--panel)', color: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--faint)', border: 'none', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent) 7%, transparent)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': { backgroundColor: 'color-mix(in srgb, var(--accent) 25%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-textfield, .cm-button': { backgroundColor: 'var(--panel)', color: 'var(--text)', backgroundImage: 'none', border: '1px solid var(--line-strong)', borderRadius: '4px' },
  '.cm-tooltip': { backgroundColor: 'var(--raised, var(--panel))', color: 'var(--text)', border: '1px solid var(--line-strong)', borderRadius: '6px', maxWidth: '460px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent, #fff)' },
  '.cm-completionDetail': { color: 'var(--muted)', fontStyle: 'normal', marginLeft: '1em' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected] .cm-completionDetail': { color: 'inherit' },
  '.cm-completionInfo, .cm-about': { padding: '8px 10px', fontSize: '12px', lineHeight: '1.45', whiteSpace: 'pre-wrap', maxHeight: '220px', overflow: 'auto' },
  '.cm-diagnostic': { fontSize: '12px' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--sunken)', border: '1px solid var(--line)', color: 'var(--muted)' },
  '.cm-changedLine': { backgroundColor: 'color-mix(in srgb, var(--ok-fill) 14%, transparent) !important' },
  '.cm-deletedChunk': { backgroundColor: 'color-mix(in srgb, var(--bad-fill) 12%, transparent) !important' },
})

const colours = HighlightStyle.define([
  { tag: tags.definition(tags.propertyName), color: 'var(--accent)' },
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic' },
  { tag: [tags.meta, tags.labelName], color: 'var(--busy)' },
])

/** What only a text that may be changed needs. */
function writing(readOnly: boolean, place: Place | undefined, text: string): Extension {
  return [EditorState.readOnly.of(readOnly), readOnly ? [] : keymap.of([indentWithTab]), readOnly || !place ? [] : assist(place, text)]
}

// All of it happens as the page is drawn: in an effect that may come later, a text of before a key was pressed would
// take the place of the one after it.
export default function Code({ value, label, onChange, onSave, original, height = '100%', place }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const diff = useRef(new Compartment())
  const rights = useRef(new Compartment())
  const calls = useRef({ onChange, onSave })
  calls.current = { onChange, onSave }
  const readOnly = !onChange
  useLayoutEffect(() => {
    const element = host.current
    if (!element) return
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(), foldGutter(), codeFolding(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), search({ top: true }),
          yaml(), syntaxHighlighting(colours), look, EditorView.lineWrapping, EditorState.tabSize.of(2),
          keymap.of([{ key: 'Mod-s', run: save, preventDefault: true }, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap]),
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            const typed = update.docChanged && !update.transactions.some((one) => one.annotation(fromOutside))
            if (typed) calls.current.onChange?.(update.state.doc.toString())
          }),
          diff.current.of([]),
          rights.current.of([]),
        ],
      }),
    })
    function save(): boolean {
      calls.current.onSave?.()
      return true
    }
    view.current = editor
    return () => editor.destroy()
  }, [])
  useLayoutEffect(() => {
    // The same editor goes on when the right to write comes, so that whoever has clicked into it is still there.
    view.current?.dispatch({ effects: rights.current.reconfigure(writing(readOnly, place, value)) })
  }, [readOnly])
  useLayoutEffect(() => {
    const editor = view.current
    const before = editor?.state.doc.toString()
    if (editor && before !== undefined && before !== value) {
      // Only what differs is replaced, so that the cursor stays where it is.
      editor.dispatch({ changes: changes(before, value), annotations: fromOutside.of(true) })
    }
  }, [value])
  useLayoutEffect(() => {
    const compare = original === undefined ? [] : unifiedMergeView({ original, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } })
    view.current?.dispatch({ effects: diff.current.reconfigure(compare) })
  }, [original])
  return <div ref={host} className="code" style={{ height }} />
}
