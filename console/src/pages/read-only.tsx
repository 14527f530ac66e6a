import { lazy, Suspense } from 'react'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { common } from '../model/common'
import { Bones } from '../ui/parts'
import { textOf } from './yaml'

const Code = lazy(() => import('../ui/code'))

/** An object as text; with an original, what differs in the fields the original has. */
export default function ReadOnly({ object, original }: { object: KObject; original?: KObject }) {
  const shown = original ? { ...common(original, object), metadata: { name: object.metadata.name } } : object
  const before = original ? textOf({ ...original, status: undefined, metadata: { name: original.metadata.name } }) : undefined
  return (
    <Suspense fallback={<Bones lines={10} />}>
      <div className="panel code-panel">
        <Code value={textOf(shown as KObject)} original={before} label={t('yaml')} />
      </div>
    </Suspense>
  )
}
