import { Link } from 'wouter'
import { PODS, type Place } from '../api/paths'
import type { KObject } from '../api/types'
import { t } from '../i18n'
import { podHealth } from '../model/health'
import { objectLink } from '../model/links'
import { Age, Bones, Empty, HealthPill } from '../ui/parts'

export function PodTable({ pods, loaded, place }: { pods: KObject[]; loaded: boolean; place: Place }) {
  if (!loaded) {
    return (
      <div className="pad">
        <Bones />
      </div>
    )
  }
  if (pods.length === 0) return <Empty title={t('pods.none')} />
  return (
    <div className="scroll-x">
      <table className="plain-table">
        <thead>
          <tr>
            <th>{t('pod')}</th>
            <th>{t('status')}</th>
            <th>{t('restarts')}</th>
            <th>{t('node')}</th>
            <th>{t('age')}</th>
            <th>{t('open')}</th>
          </tr>
        </thead>
        <tbody>
          {pods.map((pod) => {
            const { name, namespace } = pod.metadata
            const restarts = (pod.status?.containerStatuses ?? []).reduce((sum: number, one: { restartCount?: number }) => sum + (one.restartCount ?? 0), 0)
            return (
              <tr key={pod.metadata.uid}>
                <td>
                  <Link href={objectLink(place, PODS, namespace, name)} className="strong breaks">
                    {name}
                  </Link>
                </td>
                <td>
                  <HealthPill health={podHealth(pod)} />
                </td>
                <td className="num">{restarts}</td>
                <td>{pod.spec?.nodeName ?? '—'}</td>
                <td>
                  <Age since={pod.metadata.creationTimestamp} />
                </td>
                <td>
                  <span className="row gap-12 small">
                    <Link href={objectLink(place, PODS, namespace, name, { tab: 'logs' })}>{t('tab.logs')}</Link>
                    <Link href={objectLink(place, PODS, namespace, name, { tab: 'terminal' })}>{t('tab.terminal')}</Link>
                  </span>
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
