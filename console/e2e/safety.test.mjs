// Whatever is stored stays text, and the content policy holds.

import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { openPage } from './browser.mjs'
import { ask, deployment, until } from './hub.mjs'
import { browser, hub } from './stage.mjs'

const CANARY = '<img src=x onerror="window.__struck=1"><script>window.__struck=1</script><svg onload=window.__struck=1>'
const LINK = 'javascript:window.__struck=1'
const CORE = '/instances/fleet/api/v1/namespaces/default'

before(async () => {
  await ask(hub, `${CORE}/configmaps`, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'canary', namespace: 'default', annotations: { note: CANARY, link: LINK, 'atoll.io/decision': CANARY } }, data: { text: CANARY, escape: '\u001b]0;x\u0007\u202e' } },
  })
  await ask(hub, `${CORE}/events`, {
    method: 'POST',
    body: {
      apiVersion: 'v1', kind: 'Event', metadata: { name: 'canary.1', namespace: 'default' }, type: 'Warning', reason: 'Canary', message: CANARY,
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'canary', namespace: 'default' }, lastTimestamp: new Date().toISOString(),
    },
  })
})

const struck = (page) => page.evaluate(() => window.__struck === 1)

it('canaries in annotations, data and events stay text', async () => {
  const view = await openPage(browser, hub)
  for (const [path, text] of [
    ['/i/fleet/o/core/v1/configmaps/default/canary?tab=summary', 'onerror'],
    ['/i/fleet/o/core/v1/configmaps/default/canary?tab=yaml', 'onerror'],
    ['/i/fleet/o/core/v1/configmaps/default/canary?tab=events', 'onerror'],
    ['/i/fleet/o/core/v1/configmaps/default/canary?tab=tree', 'canary'],
    ['/i/fleet/activity', 'onerror'],
    ['/i/fleet', 'onerror'],
    ['/i/fleet/r/core/v1/configmaps', 'canary'],
    ['/i/fleet/search?q=canary', 'canary'],
  ]) {
    await view.go(path)
    await view.page.getByText(text).first().waitFor()
    assert.equal(await struck(view.page), false, path)
    assert.equal(await view.page.locator('img').count(), 0, path)
  }
  assert.deepEqual(view.faults, [])
  await view.close()
})

it('a server that lies cannot break in either', async () => {
  const view = await openPage(browser, hub)
  const lie = (object) => ({ ...object, metadata: { ...object.metadata, name: CANARY, uid: CANARY, labels: { [CANARY]: CANARY }, ownerReferences: [{ apiVersion: CANARY, kind: CANARY, name: LINK, uid: CANARY }] } })
  await view.page.route(/cluster\.karmada\.io\/v1alpha1\/clusters(\?|$)/, async (route) => {
    if (route.request().url().includes('watch=')) return route.fulfill({ status: 410, json: { kind: 'Status', code: 410 } })
    await route.fulfill({ json: { kind: 'ClusterList', apiVersion: 'cluster.karmada.io/v1alpha1', metadata: { resourceVersion: '1' }, items: [lie({ metadata: {}, spec: { region: CANARY, provider: CANARY, syncMode: CANARY }, status: { kubernetesVersion: CANARY, conditions: [{ type: 'Ready', status: 'False', reason: CANARY, message: CANARY }] } })] } })
  })
  for (const path of ['/i/fleet/clusters', '/i/fleet/clusters?view=grid', '/i/fleet/clusters?view=table', '/i/fleet']) {
    await view.go(path)
    await view.settled()
    await view.page.locator('.content').getByText('onerror').or(view.page.locator('.square')).first().waitFor()
    assert.equal(await struck(view.page), false, path)
    assert.equal(await view.page.locator('.content img, .content script').count(), 0, path)
  }
  await view.close()
})

it('canaries in logs stay text', async () => {
  const view = await openPage(browser, hub)
  await ask(hub, '/instances/fleet/apis/apps/v1/namespaces/default/deployments', { method: 'POST', body: deployment('loud', 1) })
  await until(async () => (await ask(hub, '/instances/fleet/apis/apps/v1/namespaces/default/deployments/loud')).status?.readyReplicas === 1, 60_000)
  await view.page.route(/\/log\?/, (route) => route.fulfill({ contentType: 'text/plain', body: `${CANARY}\n\u001b[31m${CANARY}\u001b[0m\n\u001b]8;;${LINK}\u0007here\n` }))
  await view.go('/i/fleet/o/apps/v1/deployments/default/loud?tab=logs')
  await view.page.getByText('onerror').first().waitFor()
  assert.equal(await struck(view.page), false)
  assert.equal(await view.page.locator('.content img, .content script, .content a[href^="javascript"]').count(), 0)
  assert.deepEqual(view.faults, [])
  await view.close()
})

it('every link stays on the console or is none', async () => {
  const view = await openPage(browser, hub)
  await view.go('/i/fleet/o/core/v1/configmaps/default/canary?tab=summary')
  await view.page.getByText('onerror').first().waitFor()
  const links = await view.page.locator('a').evaluateAll((all) => all.map((one) => one.getAttribute('href')))
  for (const link of links) assert.match(link, /^(\/console(\/|$)|#)/)
  await view.close()
})

it('the content policy forbids scripts in the page, evaluation, frames and foreign places', async () => {
  const answer = await fetch(`${hub.url}/console/i/fleet/clusters`)
  const policy = answer.headers.get('content-security-policy')
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /script-src 'self'(;|$)/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.doesNotMatch(policy, /unsafe-eval|script-src[^;]*unsafe-inline/)
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  const text = await answer.text()
  assert.doesNotMatch(text, /<script(?![^>]*src=)/)
  const view = await openPage(browser, hub)
  await view.go('/')
  const made = await view.page.evaluate(() => {
    const script = document.createElement('script')
    try {
      script.textContent = 'window.__struck = 1'
      document.body.append(script)
    } catch {
      // Trusted types refuse the text before the policy refuses the script.
    }
    return window.__struck === 1
  })
  assert.equal(made, false)
  await view.close()
})

it('the token is in the tab and nowhere else', async () => {
  const view = await openPage(browser, hub)
  const places = []
  view.page.on('request', (request) => places.push(request.url()))
  await view.go('/i/fleet/clusters')
  await view.page.getByText('member1').first().waitFor()
  assert.ok(places.every((place) => !place.includes(hub.token)))
  assert.deepEqual(await view.page.context().cookies(), [])
  assert.equal(await view.page.evaluate((token) => JSON.stringify(localStorage).includes(token), hub.token), false)
  assert.equal(await view.page.evaluate((token) => document.documentElement.outerHTML.includes(token), hub.token), false)
  await view.close()
})
