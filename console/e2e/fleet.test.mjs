// Stories of whoever runs the hub: join, lose a cluster, lend nodes, grant and refuse, sign in elsewhere, look back.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { parse } from 'yaml'
import { FILE, generate } from '../generate.mjs'
import { accessibilityFaults, openPage } from './browser.mjs'
import { ask, deployment, setPassword, until } from './hub.mjs'
import { request, serveProvider } from './provider.mjs'
import { browser, hub, OF_HUB } from './stage.mjs'

const ROOT = '/apis/atoll.io/v1alpha1'
const DUO = '/instances/duo/apis'
/** What makes an instance notice losses and act on them soon. */
const QUICK = { failover: 'true', 'no-execute-taint-eviction': 'true', 'cluster-status-update-seconds': '1', 'cluster-failure-threshold-seconds': '2', 'eviction-interval-seconds': '1', 'graceful-eviction-timeout-seconds': '5' }

async function story(deed, options, as = hub) {
  const view = await openPage(browser, as, options)
  try {
    await deed(view)
    assert.deepEqual(view.faults, [])
  } catch (error) {
    await view.shot('failed').catch(() => {})
    throw error
  } finally {
    await view.close()
  }
}

const instance = (name, annotations) => ({ apiVersion: 'atoll.io/v1alpha1', kind: 'Instance', metadata: { name, annotations }, spec: { type: 'Hosted' } })
const cluster = (name) => ask(hub, `${DUO}/cluster.karmada.io/v1alpha1/clusters/${name}`, { may404: true })
const isReady = (object, status = 'True') => (object.status?.conditions ?? []).some((one) => one.type === 'Ready' && one.status === status)

/** A kubeconfig of a simulated cluster, with the token of the administrator. */
function kubeconfig(name) {
  const config = parse(readFileSync(join(hub.directory ?? process.env.ATOLL_DATA_DIR, 'kubeconfig'), 'utf8'))
  const ca = config.clusters[0].cluster['certificate-authority-data']
  const server = `${process.env.ATOLL_HUB_URL ?? hub.url}/instances/${name}`
  return `apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\nclusters: [{name: c, cluster: {server: '${server}', certificate-authority-data: ${ca}}}]\nusers: [{name: c, user: {token: '${hub.token}'}}]\n`
}

it('make an instance and see it come up', async () => {
  await story(async ({ page, go, shot }) => {
    await go('/')
    await page.getByRole('button', { name: 'Create an instance' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('workshop')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('It is ready').waitFor({ timeout: 40_000 })
    await shot('create-instance')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('button', { name: 'Open' }).click()
    await page.getByRole('heading', { name: 'workshop' }).waitFor()
    await go('/')
    await page.locator('article', { hasText: 'workshop' }).getByText('Ready', { exact: true }).waitFor()
  })
})

it('join two clusters by kubeconfig', async () => {
  const quick = Object.fromEntries(Object.entries(QUICK).map(([key, value]) => [`fleet.atoll.io/${key}`, value]))
  await ask(hub, `${ROOT}/instances`, { method: 'POST', body: instance('duo', quick) })
  for (const name of ['alpha', 'beta']) await ask(hub, `${ROOT}/instances`, { method: 'POST', body: instance(name, { 'sim.atoll.io/nodes': '2' }) })
  for (const name of ['duo', 'alpha', 'beta']) await until(async () => (await ask(hub, `${ROOT}/instances/${name}`)).status?.phase === 'Ready', 40_000)
  await story(async ({ page, go, shot }) => {
    await go('/i/duo/clusters')
    for (const name of ['alpha', 'beta']) {
      await page.getByRole('button', { name: 'Join a cluster' }).first().click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name of the cluster').fill(name)
      await dialog.getByRole('button', { name: 'Paste a kubeconfig' }).click()
      await dialog.getByLabel('Kubeconfig of the cluster').fill('nonsense: true')
      await dialog.getByRole('button', { name: 'Join a cluster' }).click()
      await dialog.getByText('not a kubeconfig').waitFor()
      await dialog.getByLabel('Kubeconfig of the cluster').fill(kubeconfig(name))
      if (name === 'alpha') {
        await shot('join-paste')
        assert.deepEqual(await accessibilityFaults(page), [])
      }
      await dialog.getByRole('button', { name: 'Join a cluster' }).click()
      await dialog.waitFor({ state: 'detached' })
      await page.locator('article', { hasText: name }).getByText('Ready', { exact: true }).waitFor({ timeout: 40_000 })
    }
  })
})

it('a cluster fails, its workloads are moved, and the page shows it', async () => {
  const policy = {
    apiVersion: 'policy.karmada.io/v1alpha1', kind: 'PropagationPolicy', metadata: { name: 'one', namespace: 'default' },
    spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment' }], placement: { spreadConstraints: [{ spreadByField: 'cluster', minGroups: 1, maxGroups: 1 }] } },
  }
  await ask(hub, `${DUO}/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies`, { method: 'POST', body: policy })
  await ask(hub, `${DUO}/apps/v1/namespaces/default/deployments`, { method: 'POST', body: deployment('shop', 2) })
  const placed = async () => (await ask(hub, `${DUO}/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/shop-deployment`, { may404: true })).spec?.clusters?.map((one) => one.name) ?? []
  await until(async () => (await placed()).length === 1, 40_000)
  const [lost] = await placed()
  const other = lost === 'alpha' ? 'beta' : 'alpha'
  await story(async ({ page, go, shot }) => {
    await go('/i/duo/o/apps/v1/deployments/default/shop?tab=tree')
    await page.locator('.lane', { hasText: lost }).waitFor({ timeout: 40_000 })
    await ask(hub, `${ROOT}/instances/${lost}`, { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { annotations: { 'sim.atoll.io/faults': '["unreachable"]' } } } })
    await go('/i/duo/clusters')
    const card = page.locator('article', { hasText: lost })
    await card.getByText('NotReady').first().waitFor({ timeout: 40_000 })
    await shot('lost')
    await card.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Move everything away' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Move everything away' }).click()
    await page.getByText(`${lost} is being emptied`).waitFor()
    await go('/i/duo/o/apps/v1/deployments/default/shop?tab=tree')
    await page.locator('.lane', { hasText: other }).waitFor({ timeout: 60_000 })
    await page.locator('.lane', { hasText: other }).getByText(/2\/2|Healthy/).first().waitFor({ timeout: 60_000 })
    await shot('moved')
    assert.deepEqual(await accessibilityFaults(page), [])
  })
  assert.ok((await placed()).includes(other))
  await ask(hub, `${ROOT}/instances/${lost}`, { method: 'PATCH', type: 'application/merge-patch+json', body: { metadata: { annotations: { 'sim.atoll.io/faults': null } } } })
  await until(async () => isReady(await cluster(lost)), 40_000)
})

it('take lent nodes back, and lend one of them for a while', () =>
  story(async ({ page, go, shot }) => {
    const row = (node) => page.getByRole('row', { name: new RegExp(`vnode-member2-member2-node-${node}`) })
    const windows = page.locator('.panel', { hasText: 'Lease windows of member2' })
    await go('/i/compute/nodes')
    await row(1).waitFor({ timeout: 40_000 })
    await windows.getByRole('button', { name: 'Reclaim: half' }).click()
    await page.getByRole('dialog').getByRole('textbox').fill('half')
    await page.getByRole('dialog').getByRole('button', { name: 'Reclaim' }).click()
    await row(1).waitFor({ state: 'detached', timeout: 60_000 })
    await row(2).waitFor({ state: 'detached', timeout: 60_000 })
    await page.getByRole('button', { name: 'Lend nodes' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Lender').selectOption('member2')
    await dialog.getByLabel('Name', { exact: true }).fill('night')
    await dialog.getByLabel('CPU, percent').fill('25')
    await dialog.getByLabel('From').fill('00:00')
    await dialog.getByLabel('To', { exact: true }).fill('23:59')
    await dialog.getByLabel('Only the node').fill('member2-node-1')
    await shot('lend')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('button', { name: 'Lend', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await row(1).waitFor({ timeout: 60_000 })
    await windows.locator('.calendar').waitFor()
    assert.equal(await row(2).count(), 0)
    // Without what was said in passing.
    await go('/i/compute/nodes')
    await row(1).waitFor()
    await windows.locator('.calendar').waitFor()
    await shot('lease-calendar')
  }))

it('an account is refused, is granted a role, and may then look but not touch', async () => {
  await ask(hub, `${ROOT}/accounts`, { method: 'POST', body: { apiVersion: 'atoll.io/v1alpha1', kind: 'Account', metadata: { name: 'bob' }, spec: {} } })
  await setPassword(hub, 'bob', 'bob has a long password')
  const session = await fetch(`${hub.url}/manage/login`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user: 'bob', password: 'bob has a long password' }) })
  const bob = { ...hub, token: (await session.json()).token }
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/clusters')
    await page.getByText('You may not do this').first().waitFor()
    await shot('forbidden')
  }, {}, bob)
  await story(async ({ page, go, shot }) => {
    await go(`${OF_HUB}/access`)
    await page.getByRole('button', { name: 'New grant' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('bob')
    await dialog.getByLabel('Role').selectOption('viewer')
    await dialog.getByLabel('Where').selectOption('fleet')
    await shot('grant')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('button', { name: 'Grant', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('User bob').waitFor()
  })
  await until(async () => (await fetch(`${hub.url}/instances/fleet/apis/cluster.karmada.io/v1alpha1/clusters`, { headers: { authorization: `Bearer ${bob.token}` } })).ok, 40_000)
  await story(async ({ page, go }) => {
    await go('/i/fleet/clusters')
    await page.getByText('member1').first().waitFor()
    assert.equal(await page.getByRole('button', { name: 'Join a cluster' }).count(), 0)
    await go('/i/member1/r/core/v1/pods')
    await page.getByText('You may not do this').first().waitFor()
  }, {}, bob)
})

it('sign in by redirect to an identity provider, with a proof key', async () => {
  const provider = await serveProvider('atoll', 'carol')
  try {
    await ask(hub, `${ROOT}/identityproviders`, { method: 'POST', body: { apiVersion: 'atoll.io/v1alpha1', kind: 'IdentityProvider', metadata: { name: 'example' }, spec: { issuer: provider.url, audiences: ['atoll'], clientId: 'atoll', title: 'Example', caData: provider.caData } } })
    await story(async ({ page, go, shot }) => {
      await go('/settings')
      const button = page.getByRole('button', { name: 'Sign in with Example' })
      await button.waitFor()
      await shot('sign-in-provider')
      assert.deepEqual(await accessibilityFaults(page), [])
      await button.click()
      await page.locator('.who').getByText('oidc:carol').waitFor({ timeout: 40_000 })
      const at = new URL(page.url())
      assert.equal(at.pathname, '/console/settings', 'back where one was going')
      assert.equal(at.search, '', 'neither code nor state stay in the address')
      assert.equal(await page.evaluate(() => sessionStorage.getItem('atoll.errand')), null)
      // An answer that was not asked for in this tab is no sign-in.
      await page.evaluate(() => sessionStorage.clear())
      await go('/?code=stolen&state=guessed')
      await page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor()
      assert.deepEqual(provider.seen, ['proven'])
    }, { signedIn: false })
  } finally {
    await ask(hub, `${ROOT}/identityproviders/example`, { method: 'DELETE' })
    provider.close()
  }
})

it('a certificate of the browser is a way in', async () => {
  const { key, csr } = request('/O=team-c/CN=dora')
  const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  const wanted = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: 'dora' }, spec: { request: csr.toString('base64'), signerName: 'kubernetes.io/kube-apiserver-client', usages: ['client auth'] } }
  const made = await ask(hub, requests, { method: 'POST', body: wanted })
  const approval = { type: 'Approved', status: 'True', reason: 'Test', message: 'yes' }
  await ask(hub, `${requests}/dora/approval`, { method: 'PUT', body: { ...made, status: { conditions: [approval] } } })
  let cert = ''
  await until(async () => (cert = (await ask(hub, `${requests}/dora`)).status?.certificate ?? '') !== '', 40_000)
  // A preview in between cannot show it to the hub: only its files are taken from there.
  const real = process.env.ATOLL_HUB_URL ?? hub.url
  const own = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates: [{ origin: real, cert: Buffer.from(cert, 'base64'), key }] })
  if (real !== hub.url) {
    await own.route(`${real}/console/**`, async (route) => {
      const file = await fetch(route.request().url().replace(real, hub.url))
      await route.fulfill({ contentType: file.headers.get('content-type'), body: Buffer.from(await file.arrayBuffer()) })
    })
  }
  const page = await own.newPage()
  await page.goto(`${real}/console/`)
  await page.getByRole('button', { name: 'Continue as dora (certificate)' }).click()
  await page.locator('.who').getByText('dora').waitFor()
  assert.equal(await page.evaluate(() => sessionStorage.getItem('atoll.token')), '', 'there is no token to be stolen')
  await own.close()
})

it('look back at who did what, as it happens', () =>
  story(async ({ page, go, shot }) => {
    await go(`${OF_HUB}/activity?view=audit`)
    await page.getByRole('cell', { name: 'bob' }).first().waitFor()
    await page.getByPlaceholder('Filter by user, method, name').fill('watched-map')
    await page.getByText('Nothing was recorded').waitFor()
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'watched-map', namespace: 'default' } }
    await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps/watched-map?fieldManager=e2e', { method: 'PATCH', type: 'application/apply-patch+yaml', body: map })
    await page.getByRole('cell', { name: /watched-map/ }).first().waitFor()
    // What happened before is paged back to the first line.
    await page.getByPlaceholder('Filter by user, method, name').fill('')
    await page.getByText(/^all since /).waitFor()
    await shot('audit')
    assert.deepEqual(await accessibilityFaults(page), [])
  }))

it('the generated client is true to the OpenAPI of the hub', async () => {
  assert.equal(readFileSync(FILE, 'utf8'), await generate(hub.url, hub.token), 'run `npm run generate`')
})
