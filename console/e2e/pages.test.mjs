// Every page: it shows what it is about, the browser has nothing to complain about, and axe finds no serious fault.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { accessibilityFaults, openPage } from './browser.mjs'
import { ask, deployment, until } from './hub.mjs'
import { browser, hub, OF_HUB } from './stage.mjs'

const DEPLOYMENTS = '/instances/fleet/apis/apps/v1/namespaces/default/deployments'
const WEB = '/i/fleet/o/apps/v1/deployments/default/web'
const PAGES = [
  ['home', '/', 'Instances'],
  ['overview', '/i/fleet', 'Latest decisions'],
  ['clusters', '/i/fleet/clusters', 'member1'],
  ['clusters-grid', '/i/fleet/clusters?view=grid', 'Colour by'],
  ['clusters-table', '/i/fleet/clusters?view=table', 'member1'],
  ['cluster', '/i/fleet/clusters/member1', 'member1-node-1'],
  ['workloads', '/i/fleet/r/apps/v1/deployments', 'web'],
  ['workloads-member', '/i/fleet/r/core/v1/pods?m=member1', 'web-'],
  ['kinds', '/i/fleet/kinds', 'PropagationPolicy'],
  ['tree', `${WEB}?tab=tree`, 'Healthy'],
  ['summary', `${WEB}?tab=summary`, 'Annotations'],
  ['yaml', `${WEB}?tab=yaml`, 'apiVersion'],
  ['events', `${WEB}?tab=events`, ''],
  ['logs-fleet', `${WEB}?tab=logs`, 'lines'],
  ['propagation', '/i/fleet/propagation', 'web'],
  ['policies', '/i/fleet/policies', 'everywhere'],
  ['policy-new', '/i/fleet/policies/new', 'What it selects now'],
  ['override-new', '/i/fleet/policies/new?type=override', 'Changes'],
  ['virtual-nodes', '/i/compute/nodes', 'vnode-member1'],
  ['search', '/i/fleet/search?q=web', 'web'],
  ['activity', '/i/member1/activity', 'web'],
  ['permissions', '/i/fleet/access', 'cluster-admin'],
  ['settings', '/settings', 'Appearance'],
  ['instance-settings', '/i/fleet/settings', 'Failover'],
  ['differences-plain', `${WEB}?tab=differences`, 'spec/replicas'],
  ['hub-access', `${OF_HUB}/access`, 'Local accounts'],
  ['usage', '/i/fleet/clusters/member2', 'Usage'],
  ['root', `${OF_HUB}/r/core/v1/namespaces`, 'kube-system'],
]

/** Colours are the same everywhere: these have all of them. */
const DARK = ['home', 'overview', 'clusters', 'clusters-grid', 'cluster', 'workloads', 'tree', 'yaml', 'logs-fleet', 'policy-new', 'virtual-nodes', 'activity', 'hub-access', 'differences-plain']

before(async () => {
  await ask(hub, DEPLOYMENTS, { method: 'POST', body: deployment('web', 6) })
  await until(async () => (await ask(hub, `${DEPLOYMENTS}/web`)).status?.readyReplicas === 6, 60_000)
})

for (const dark of [false, true]) {
  describe(dark ? 'in the dark' : 'in the light', () => {
    let view
    before(async () => {
      view = await openPage(browser, hub, { dark })
    })
    after(() => view?.close())
    for (const [name, path, text] of PAGES.filter(([name]) => !dark || DARK.includes(name))) {
      it(`${name} is shown without fault`, async () => {
        await view.go(path)
        await view.page.locator('.content').getByText(text).first().waitFor({ timeout: 20_000 })
        await view.page.waitForTimeout(150)
        await view.shot(dark ? `${name}-dark` : name)
        assert.deepEqual(await accessibilityFaults(view.page), [])
        assert.deepEqual(view.faults.splice(0), [])
      })
    }
  })
}

it('the same pages speak Chinese', async () => {
  const view = await openPage(browser, hub, { language: 'zh' })
  for (const [name, path, text] of [['home', '/', '实例'], ['tree', `${WEB}?tab=tree`, '已按决策'], ['clusters', '/i/fleet/clusters', '接入集群']]) {
    await view.go(path)
    await view.page.locator('.content').getByText(text).first().waitFor()
    await view.settled()
    await view.shot(`${name}-zh`)
  }
  assert.equal(await view.page.locator('html').getAttribute('lang'), 'zh-CN')
  assert.deepEqual(view.faults, [])
  await view.close()
})

it('the first page is small and soon there', async () => {
  const paints = []
  for (let turn = 0; turn < 5; turn += 1) {
    // A context of its own has neither a connection nor a file yet.
    const view = await openPage(browser, hub)
    const files = []
    view.page.on('response', (response) => response.url().includes('/console/') && files.push(response))
    await view.go('/')
    await view.page.getByRole('heading', { name: 'Instances' }).waitFor()
    paints.push(await view.page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime))
    const sizes = await Promise.all(files.map((file) => file.request().sizes()))
    const bytes = sizes.reduce((sum, size) => sum + size.responseBodySize, 0)
    assert.ok(bytes > 0 && bytes < 500_000, `${bytes} bytes`)
    if (turn === 0) console.log(`first page: ${(bytes / 1000).toFixed(0)} kB`)
    await view.close()
  }
  const [fastest, , middle, , slowest] = paints.toSorted((a, b) => a - b)
  assert.ok(fastest > 0, 'something was painted')
  console.log(`first paint: ${middle.toFixed(0)} ms in the middle of five, ${fastest.toFixed(0)} to ${slowest.toFixed(0)}`)
})

it('what is seen first waits for no other file', async () => {
  const view = await openPage(browser, hub)
  await view.page.route(/\/console\/assets\//, () => new Promise(() => {}))
  await view.page.goto(`${hub.url}/console/`, { waitUntil: 'commit' })
  await view.page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length === 1)
  await view.close()
})

it('nothing is cut off at 1280 pixels', async () => {
  const view = await openPage(browser, hub, { width: 1280, height: 720 })
  for (const [name, path, text] of PAGES.filter(([name]) => ['overview', 'clusters-table', 'cluster', 'workloads', 'tree', 'policy-new', 'virtual-nodes'].includes(name))) {
    await view.go(path)
    await view.page.locator('.content').getByText(text).first().waitFor({ timeout: 20_000 })
    const wide = await view.page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(wide <= 1280, `${name} is ${wide} wide`)
  }
  assert.deepEqual(view.faults, [])
  await view.close()
})

it('a phone can read', async () => {
  const view = await openPage(browser, hub, { width: 390, height: 844 })
  for (const [name, path] of [['home', '/'], ['tree', `${WEB}?tab=tree`], ['clusters', '/i/fleet/clusters']]) {
    await view.go(path)
    await view.settled()
    await view.shot(`${name}-phone`)
    const wide = await view.page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(wide <= 390, `${name} is ${wide} wide`)
  }
  await view.page.getByRole('button', { name: 'Open the navigation' }).click()
  await view.page.getByRole('link', { name: 'Policies' }).click()
  await view.page.getByRole('heading', { name: 'Policies' }).waitFor()
  assert.deepEqual(view.faults, [])
  await view.close()
})
