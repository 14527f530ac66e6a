// The clusters that were not chosen, by the rule that refused them.

import { useState } from 'react'
import { Link } from 'wouter'
import { t } from '../i18n'
import type { Decision, Refusal } from '../model/decision'
import { clusterLink } from '../model/links'
import { useHere } from '../place'
import { Button, Panel } from '../ui/parts'

const FEW = 12

export function Refusals({ decision }: { decision: Decision }) {
  const total = decision.refused.reduce((sum, one) => sum + one.clusters.length, 0)
  if (total === 0 && decision.skipped.length === 0) return null
  const ordered = [...decision.refused].sort((a, b) => b.clusters.length - a.clusters.length)
  return (
    <Panel title={t('tree.refusals')} tools={<span className="count">{total}</span>} flush>
      <ul className="lines refusals">
        {decision.skipped.map((one) => (
          <li key={one.affinity}>
            <span className="tag">{t('tree.affinity')}</span>
            <span className="strong">{one.affinity}</span>
            <span className="grow small muted breaks">{one.why}</span>
          </li>
        ))}
        {ordered.map((one) => (
          <RefusalLine key={`${one.step}${one.sentence}`} refusal={one} />
        ))}
      </ul>
    </Panel>
  )
}

function RefusalLine({ refusal }: { refusal: Refusal }) {
  const { place } = useHere()
  const [all, setAll] = useState(false)
  const shown = all ? refusal.clusters : refusal.clusters.slice(0, FEW)
  return (
    <li className="refusal">
      <div className="row wrap">
        {refusal.step && <span className="tag">{refusal.step}</span>}
        <span className="breaks">{refusal.sentence}</span>
        <span className="count">{refusal.clusters.length}</span>
      </div>
      <div className="row wrap gap-4">
        {shown.map((cluster) => (
          <Link key={cluster} href={clusterLink(place.instance, cluster)} className="chip cut" title={cluster}>
            {cluster}
          </Link>
        ))}
        {refusal.clusters.length > FEW && (
          <Button look="bare small" onClick={() => setAll(!all)}>
            {all ? t('less') : t('more', { n: refusal.clusters.length - FEW })}
          </Button>
        )}
      </div>
    </li>
  )
}
