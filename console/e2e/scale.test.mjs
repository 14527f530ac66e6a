// Five hundred clusters and a hundred thousand rows, told by the test instead of a server.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { accessibilityFaults, openPage } from './browser.mjs'
import { browser, hub } from './stage.mjs'

const REGIONS = ['eu-central-1', 'eu-west-1', 'us-east-1', 'us-west-2', 'ap-southeast-1', 'ap-northeast-1', 'sa-east-1', 'af-south-1', 'cn-north-1', 'me-central-1']
const ROWS = 100_000

function cluster(number) {
  const sick = number % 41 === 7
  return {
    metadata: { name: number % 97 === 5 ? `a-cluster-with-a-very-long-name-that-somebody-thought-was-a-good-idea-${number}` : `prod-${REGIONS[number % 10]}-${number}`, uid: `u${number}`, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { syncMode: number % 3 ? 'Push' : 'Pull', region: REGIONS[number % 10], provider: ['aws', 'gcp', 'own'][number % 3], taints: number % 53 === 9 ? [{ key: 'cluster.karmada.io/unschedulable', effect: 'NoSchedule' }] : [] },
    status: {
      kubernetesVersion: `v1.${30 + (number % 6)}.2`, nodeSummary: { totalNum: 10 + (number % 90), readyNum: 10 + (number % 90) },
      conditions: [{ type: 'Ready', status: sick ? 'False' : 'True', reason: sick ? 'ClusterNotReachable' : 'ClusterReady', message: sick ? 'the member does not answer: connection timed out' : '' }],
      resourceSummary: { allocatable: { cpu: '400', memory: '1600Gi', pods: '1100' }, allocated: { cpu: `${(number * 37) % 400}`, memory: `${(number * 53) % 1600}Gi`, pods: `${(number * 11) % 1100}` } },
    },
  }
}

const NEVER = new Promise(() => {})

it('five hundred clusters read at a glance', async () => {
  const view = await openPage(browser, hub)
  const items = Array.from({ length: 500 }, (_, number) => cluster(number))
  await view.page.route(/cluster\.karmada\.io\/v1alpha1\/clusters(\?|$)/, (route) =>
    route.request().url().includes('watch=') ? NEVER : route.fulfill({ json: { kind: 'ClusterList', apiVersion: 'cluster.karmada.io/v1alpha1', metadata: { resourceVersion: '1' }, items } }),
  )
  await view.go('/i/fleet/clusters')
  await view.page.locator('.square').nth(499).waitFor()
  await view.shot('clusters-500')
  assert.deepEqual(await accessibilityFaults(view.page), [])
  await view.page.getByRole('button', { name: 'CPU' }).click()
  await view.shot('clusters-500-cpu')
  await view.page.getByPlaceholder('Filter by name').fill('sa-east')
  await view.page.waitForFunction(() => document.querySelectorAll('.heat .square').length === 50 || document.querySelectorAll('.heat .square').length === 49)
  await view.go('/i/fleet/clusters?view=table')
  await view.page.getByRole('row').nth(5).waitFor()
  await view.shot('clusters-500-table')
  await view.go('/i/fleet/clusters?view=cards')
  await view.page.locator('article').nth(20).waitFor()
  await view.shot('clusters-500-cards')
  assert.deepEqual(view.faults, [])
  await view.close()
})

function page(from, size) {
  return Array.from({ length: Math.min(size, ROWS - from) }, (_, offset) => {
    const number = from + offset
    const name = `pod-${String(number).padStart(6, '0')}`
    return { cells: [name, number % 17 ? '1/1' : '0/1', number % 17 ? 'Running' : 'CrashLoopBackOff', number % 5, '3d'], object: { kind: 'PartialObjectMetadata', metadata: { name, namespace: `team-${number % 40}`, uid: name, creationTimestamp: '2026-01-01T00:00:00Z' } } }
  })
}

/** Processor time of the page's main thread for one frame while it scrolls in such steps. */
async function cost(page, step) {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const spent = async () => (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value
  const before = await spent()
  await page.evaluate(async (step) => {
    const scroll = document.querySelector('.table .scroll')
    for (let frame = 0; frame < 120; frame += 1) {
      scroll.scrollTop = (scroll.scrollTop + step) % scroll.scrollHeight
      await new Promise(requestAnimationFrame)
    }
  }, step)
  const after = await spent()
  await session.detach()
  return ((after - before) * 1000) / 120
}

/**
 * What a trace shows while a wheel turns, as fast as a hand can: how many frames were drawn; how many were dropped, and in how
 * many the list moved but new rows came a frame later; and how long the page was busy at once.
 */
async function traced(page) {
  const box = await page.locator('.table .scroll').boundingBox()
  const session = await page.context().newCDPSession(page)
  await browser.startTracing(page, { categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'disabled-by-default-devtools.timeline.frame', 'blink.user_timing'] })
  await page.evaluate(() => performance.mark('wheel begins'))
  await session.send('Input.synthesizeScrollGesture', { x: box.x + box.width / 2, y: box.y + box.height / 2, yDistance: -12_000, speed: 6000, gestureSourceType: 'mouse' })
  await page.evaluate(() => performance.mark('wheel ends'))
  const { traceEvents } = JSON.parse(await browser.stopTracing())
  await session.detach()
  const at = (name) => traceEvents.find((event) => event.name === name)?.ts
  const [begin, end] = [at('wheel begins'), at('wheel ends')]
  const within = traceEvents.filter((event) => event.ts >= begin && event.ts <= end)
  const mine = within.find((event) => event.name === 'Layout')
  const tasks = within.filter((event) => event.tid === mine?.tid && event.pid === mine?.pid && event.name === 'RunTask' && event.dur).map((event) => event.dur / 1000)
  const lost = within.filter((event) => event.name === 'DroppedFrame')
  const late = lost.filter((event) => event.args?.data?.hasPartialUpdate ?? event.args?.hasPartialUpdate).length
  return { drawn: within.filter((event) => event.name === 'DrawFrame').length, dropped: lost.length - late, partial: late, seconds: (end - begin) / 1e6, longest: Math.max(0, ...tasks), long: tasks.filter((task) => task > 1000 / 60).length }
}

it('a hundred thousand rows scroll smoothly', async () => {
  const view = await openPage(browser, hub)
  await view.page.route(/\/api\/v1\/pods\?/, (route) => {
    const url = new URL(route.request().url())
    if (url.searchParams.has('watch')) return NEVER
    const from = Number(url.searchParams.get('continue') ?? 0)
    const size = Number(url.searchParams.get('limit'))
    const more = from + size < ROWS
    return route.fulfill({
      json: {
        kind: 'Table', metadata: { resourceVersion: '1', ...(more && { continue: String(from + size), remainingItemCount: ROWS - from - size }) },
        columnDefinitions: [{ name: 'Name', type: 'string', format: 'name', priority: 0 }, { name: 'Ready', type: 'string', priority: 0 }, { name: 'Status', type: 'string', priority: 0 }, { name: 'Restarts', type: 'integer', priority: 0 }, { name: 'Age', type: 'string', priority: 0 }],
        rows: page(from, size),
      },
    })
  })
  await view.go('/i/fleet/r/core/v1/pods')
  await view.page.getByText('100,000').waitFor()
  assert.ok((await view.page.locator('.line').count()) < 80, 'only rows in view are drawn')
  // Sorting needs every row: it loads them all.
  await view.page.getByRole('button', { name: 'Name', exact: true }).click()
  await view.page.waitForFunction((rows) => document.querySelector('.table .scroll')?.scrollHeight > rows * 37, ROWS, { timeout: 180_000 })
  const wheel = await cost(view.page, 114)
  const jumps = await cost(view.page, (ROWS * 38) / 17)
  const seen = await traced(view.page)
  console.log(`a traced run of ${seen.seconds.toFixed(1)} s: ${(seen.drawn / seen.seconds).toFixed(1)} frames each second, ${seen.drawn} drawn, ${seen.partial} of them before the page was done, and ${seen.dropped} dropped; ${seen.long} tasks of the page took longer than 16.7 ms, the longest ${seen.longest.toFixed(1)} ms`)
  assert.ok(seen.drawn > 0, 'the trace saw the frames')
  // How long a frame takes is the business of the machine; how much of it the page needs is told.
  console.log(`scrolling 100,000 rows: ${wheel.toFixed(1)} ms of processor for a frame at the wheel, ${jumps.toFixed(1)} ms for a jump`)
  assert.ok((await view.page.locator('.line').count()) < 80, 'only rows in view are drawn')
  await view.page.waitForTimeout(300)
  await view.shot('rows-100000')
  await view.page.getByPlaceholder('Filter').fill('CrashLoop')
  await view.page.getByText(/5,?883 \/ 100,?000/).waitFor()
  assert.deepEqual(view.faults, [])
  await view.close()
})
