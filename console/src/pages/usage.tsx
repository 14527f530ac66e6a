// CPU and memory of a cluster, a node or a pod while one looks.

import { base, type Place } from '../api/paths'
import { useSamples } from '../api/samples'
import { t } from '../i18n'
import { bytes, cores } from '../model/quantity'
import { Chart } from '../ui/chart'
import { AsOf, Bones, Empty, Failure, Panel } from '../ui/parts'

export function Usage({ place, of, most }: { place: Place; of: string; most?: { cpu: number; memory: number } }) {
  const { list, error } = useSamples(`${base(place)}/apis/metrics.k8s.io/v1beta1/${of}`)
  const last = list[list.length - 1]
  return (
    <Panel title={t('usage')} tools={last && <AsOf at={last.at} live={!error} />}>
      {error && list.length === 0 ? (
        error.code === 404 ? <Empty title={t('usage.none')}>{t('usage.none.detail')}</Empty> : <Failure error={error} />
      ) : !last ? (
        <Bones lines={4} />
      ) : (
        <div className="charts">
          <Chart label={t('cpu')} points={list.map((sample) => ({ at: sample.at, value: sample.cpu }))} format={cores} most={most?.cpu} />
          <Chart label={t('memory')} points={list.map((sample) => ({ at: sample.at, value: sample.memory }))} format={bytes} most={most?.memory} />
        </div>
      )}
    </Panel>
  )
}
