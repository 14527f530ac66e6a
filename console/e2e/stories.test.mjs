// What people come for, from sign-in to a shell.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { accessibilityFaults, openPage } from './browser.mjs'
import { ask, deployment, setPassword, until } from './hub.mjs'
import { browser, hub } from './stage.mjs'

const API = '/instances/fleet/apis'
const DEPLOYMENTS = `${API}/apps/v1/namespaces/default/deployments`

async function story(deed, options) {
  const view = await openPage(browser, hub, options)
  await deed(view)
  assert.deepEqual(view.faults, [])
  await view.close()
}

it('a wrong token is refused, the right one opens the door, and signing out closes it', () =>
  story(async ({ page, go, shot }) => {
    await go('/')
    await page.getByLabel('Token').fill('not-the-token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('does not know this token').waitFor()
    await shot('sign-in')
    assert.deepEqual(await accessibilityFaults(page), [])
    await page.getByLabel('Token').fill(hub.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Instances' }).waitFor()
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor()
    assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0)
  }, { signedIn: false }))

it('a local account opens a session, and a wrong password does not', async () => {
  await ask(hub, '/apis/atoll.io/v1alpha1/accounts', { method: 'POST', body: { apiVersion: 'atoll.io/v1alpha1', kind: 'Account', metadata: { name: 'ann' }, spec: { groups: ['team-a'] } } })
  await setPassword(hub, 'ann', 'correct horse battery')
  await story(async ({ page, go, shot }) => {
    await go('/')
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByLabel('Name').fill('ann')
    await page.getByLabel('Password').fill('wrong horse battery')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Name or password is wrong').waitFor({ timeout: 90_000 })
    await shot('sign-in-account')
    assert.deepEqual(await accessibilityFaults(page), [])
    await page.getByLabel('Password').fill('correct horse battery')
    await page.getByRole('button', { name: 'Sign in' }).click()
    // Checking a password is meant to take a while, and takes longer without optimisation.
    await page.getByRole('heading', { name: 'Instances' }).waitFor({ timeout: 90_000 })
    await page.locator('.who').getByText('ann').waitFor()
  }, { signedIn: false })
})

it('deploy by YAML and watch it spread', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/r/apps/v1/deployments')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'YAML' }).click()
    await page.locator('.cm-content').waitFor()
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('The server would accept this').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByText('It runs as decided in').waitFor({ timeout: 40_000 })
    await page.locator('.lane').first().waitFor()
    assert.equal(await page.locator('.lane').count(), 3)
    await page.locator('.fold').first().click()
    await page.locator('.lane-inside').getByText('Running').first().waitFor()
    await shot('deployed')
    assert.deepEqual(await accessibilityFaults(page), [])
  }))

it('deploy by form, and see the same as YAML', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/r/apps/v1/deployments')
    await page.getByRole('button', { name: 'Create' }).click()
    const dialog = page.getByRole('dialog')
    const create = dialog.getByRole('button', { name: 'Create' })
    await dialog.getByLabel('Name', { exact: true }).waitFor()
    assert.ok(await create.isDisabled(), 'a name and an image are needed')
    await dialog.getByLabel('Name', { exact: true }).fill('boutique')
    await dialog.getByLabel('Image').fill('nginx:1.29')
    await dialog.getByLabel('Replicas').fill('3')
    await dialog.getByLabel('Port').fill('80')
    await dialog.getByRole('button', { name: 'Add a variable' }).click()
    await dialog.getByPlaceholder('NAME').fill('MODE')
    await dialog.getByLabel('Value').fill('demo')
    await shot('create-form')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('button', { name: 'YAML' }).click()
    await page.locator('.cm-line', { hasText: 'containerPort: 80' }).waitFor()
    await create.click()
    await page.getByText('It runs as decided in').waitFor({ timeout: 40_000 })
    const made = await ask(hub, `${DEPLOYMENTS}/boutique`)
    assert.deepEqual(made.spec.template.spec.containers[0].env, [{ name: 'MODE', value: 'demo' }])
  }))

it('what a workload needs besides has a form, too', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/r/core/v1/configmaps')
    await page.getByRole('button', { name: 'Create' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('settings')
    for (const [at, [key, value]] of [['colour', 'blue'], ['level', '3']].entries()) {
      await dialog.getByRole('button', { name: 'Add a key' }).click()
      await dialog.getByPlaceholder('key').nth(at).fill(key)
      await dialog.getByLabel('Value').nth(at).fill(value)
    }
    await shot('create-configmap')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'settings' }).waitFor()
    assert.deepEqual((await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps/settings')).data, { colour: 'blue', level: '3' })
  }))

it('the editor knows what may be written, and points at what may not', () =>
  story(async ({ page, go, shot }) => {
    // Whoever clicks into the text before the hub has said that it may be changed is still in it after.
    let clicked = () => {}
    const click = new Promise((resolve) => (clicked = resolve))
    await page.route(/selfsubjectaccessreviews/, (route) => click.then(() => route.continue()))
    await go('/i/fleet/o/apps/v1/deployments/default/boutique?tab=yaml')
    await page.locator('.cm-line', { hasText: /^ {2}replicas: 3/ }).first().click()
    clicked()
    await page.getByRole('button', { name: 'Save' }).waitFor()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await page.keyboard.type('paus')
    await page.locator('.cm-tooltip-autocomplete').getByText('paused').first().waitFor()
    await shot('editor-completion')
    await page.keyboard.press('Escape')
    await page.keyboard.type('ing: true')
    await page.locator('.cm-lintRange-error').first().waitFor()
    // The list of what is wrong follows the text; a pointer over it would have to be there at the right moment.
    await page.keyboard.press('Control+Shift+M')
    await page.locator('.cm-panel-lint').getByText('There is no field pausing here').waitFor()
    assert.deepEqual(await accessibilityFaults(page), [])
  }))

it('scale in the console and see the decision follow', () =>
  story(async ({ page, go }) => {
    await go('/i/fleet/o/apps/v1/deployments/default/example')
    await page.getByRole('button', { name: 'Scale' }).click()
    await page.getByLabel('Replicas').fill('6')
    await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click()
    await page.getByText('6 replicas in 3 clusters').waitFor({ timeout: 30_000 })
    await until(async () => (await ask(hub, `${DEPLOYMENTS}/example`)).status?.readyReplicas === 6, 40_000)
  }))

it('see why it runs nowhere, and which rule refused each cluster', async () => {
  await ask(hub, `${API}/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies`, {
    method: 'POST',
    body: {
      apiVersion: 'policy.karmada.io/v1alpha1', kind: 'PropagationPolicy', metadata: { name: 'gpu', namespace: 'default' },
      spec: { priority: 5, resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'trainer' }], placement: { clusterAffinity: { labelSelector: { matchLabels: { gpu: 'true' } } } } },
    },
  })
  await ask(hub, DEPLOYMENTS, { method: 'POST', body: deployment('trainer', 2) })
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/apps/v1/deployments/default/trainer')
    await page.getByText('No decision: 0/3 clusters are available').waitFor({ timeout: 20_000 })
    await page.locator('.refusal').getByText('member2').waitFor()
    await shot('refused')
  })
})

it('see which pod crashes, with the reason in the first sentence', async () => {
  await ask(hub, DEPLOYMENTS, { method: 'POST', body: deployment('checkout', 3, { pod: { 'sim.atoll.io/crash-loop': 'true' } }) })
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/apps/v1/deployments/default/checkout')
    await page.getByText(/pod checkout-.* is not well: CrashLoopBackOff/).waitFor({ timeout: 40_000 })
    await shot('crashing')
  })
})

it('an object that no policy selects says so and offers a policy for it', async () => {
  await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps', { method: 'POST', body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'alone', namespace: 'default' }, data: { a: 'b' } } })
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/core/v1/configmaps/default/alone')
    await page.getByText('No policy matches this object').waitFor()
    await page.getByRole('link', { name: 'Create a policy' }).click()
    await page.getByRole('checkbox', { name: 'member2' }).check()
    await page.getByText('1 / 3').waitFor()
    await shot('policy-for-one')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('The server would accept this').waitFor()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'alone' }).waitFor()
    await until(async () => (await ask(hub, '/instances/member2/api/v1/namespaces/default/configmaps/alone', { may404: true })).kind === 'ConfigMap')
  })
})

it('edit YAML, see the change, save it, and be told when somebody was faster', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/core/v1/configmaps/default/alone?tab=yaml')
    await page.locator('.cm-content').click()
    await page.keyboard.press('Control+Home')
    for (let line = 0; line < 4; line += 1) await page.keyboard.press('ArrowDown')
    await page.locator('.cm-line', { hasText: 'a: b' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type('anana')
    await page.getByRole('button', { name: 'Show changes' }).click()
    await page.locator('.cm-changedLine').first().waitFor()
    await shot('changes')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    assert.equal((await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps/alone')).data.a, 'banana')
    await page.locator('.cm-line', { hasText: 'a: banana' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type('s')
    await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps/alone', { method: 'PATCH', type: 'application/merge-patch+json', body: { data: { b: 'c' } } })
    await page.getByText('It changed on the server while you were editing').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Somebody else changed it meanwhile').waitFor()
  }))

it('roll back to what the members ran before', async () => {
  await ask(hub, DEPLOYMENTS, { method: 'POST', body: deployment('cart', 3, { image: 'nginx:1.28' }) })
  await until(async () => (await ask(hub, `${DEPLOYMENTS}/cart`)).status?.readyReplicas === 3, 60_000)
  await ask(hub, `${DEPLOYMENTS}/cart`, { method: 'PATCH', type: 'application/strategic-merge-patch+json', body: { spec: { template: { spec: { containers: [{ name: 'main', image: 'nginx:1.29' }] } } } } })
  await until(async () => (await ask(hub, '/instances/member1/apis/apps/v1/namespaces/default/replicasets?labelSelector=app%3Dcart')).items.length === 2, 60_000)
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/apps/v1/deployments/default/cart')
    await page.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Roll back' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('nginx:1.28').waitFor()
    await shot('rollback')
    assert.deepEqual(await accessibilityFaults(page), [])
    await dialog.getByRole('radio').last().check()
    await dialog.getByRole('button', { name: 'Roll back' }).click()
    await page.getByText('Rolled back to revision 1').waitFor()
  })
  assert.equal((await ask(hub, `${DEPLOYMENTS}/cart`)).spec.template.spec.containers[0].image, 'nginx:1.28')
})

it('see in what members differ from the template', async () => {
  await ask(hub, `${API}/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies`, {
    method: 'POST',
    body: {
      apiVersion: 'policy.karmada.io/v1alpha1', kind: 'OverridePolicy', metadata: { name: 'mirror', namespace: 'default' },
      spec: { resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'mirrored' }], overrideRules: [{ targetCluster: { clusterNames: ['member2'] }, overriders: { imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'mirror.example' }] } }] },
    },
  })
  await ask(hub, DEPLOYMENTS, { method: 'POST', body: deployment('mirrored', 3) })
  await until(async () => (await ask(hub, '/instances/member2/apis/apps/v1/namespaces/default/deployments/mirrored', { may404: true })).kind === 'Deployment', 60_000)
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/o/apps/v1/deployments/default/mirrored?tab=differences')
    await page.getByRole('cell', { name: /mirror\.example/ }).waitFor()
    await shot('differences')
    assert.deepEqual(await accessibilityFaults(page), [])
  })
})

it('see what a policy would move before it is saved, and what the loss of a cluster would', async () => {
  await ask(hub, '/instances/fleet/api/v1/namespaces/default/configmaps', { method: 'POST', body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'planned', namespace: 'default' }, data: { a: 'b' } } })
  await story(async ({ page, go, shot }) => {
    await go('/i/fleet/policies/new?api=v1&kind=ConfigMap&name=planned&ns=default')
    await page.getByRole('checkbox', { name: 'member2' }).check()
    await page.locator('.moves').getByText('ConfigMap default/planned').waitFor({ timeout: 15_000 })
    await page.waitForFunction(() => document.querySelectorAll('.moves .step').length === 1)
    await go('/i/fleet/policies/new?kind=Deployment&name=example&ns=default')
    await page.getByRole('checkbox', { name: 'member2' }).check()
    await page.getByRole('spinbutton', { name: 'Priority' }).fill('10')
    await page.getByRole('checkbox', { name: 'Take objects over' }).check()
    await page.locator('.moves').getByText('Deployment default/example').waitFor({ timeout: 15_000 })
    await page.locator('.moves .tone-bad').first().waitFor()
    await shot('preview')
    assert.deepEqual(await accessibilityFaults(page), [])
    await go('/i/fleet/o/policy.karmada.io/v1alpha1/propagationpolicies/default/everywhere')
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByRole('heading', { name: 'Change everywhere' }).waitFor()
    await page.getByRole('checkbox', { name: 'member3' }).check()
    await page.locator('.moves .tone-bad').first().waitFor({ timeout: 15_000 })
    await shot('policy-change')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('The server would accept this').waitFor()
    await go('/i/fleet/clusters/member1')
    await page.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'What if it is lost' }).click()
    await page.getByRole('dialog').locator('.moves').getByText('Deployment default/example').waitFor({ timeout: 15_000 })
    await shot('loss')
  })
})

it('the commands for joining are there to be copied', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/clusters')
    await page.getByRole('button', { name: 'Join a cluster' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name of the cluster').fill('prod-eu')
    await dialog.getByText('atoll join prod-eu --instance fleet').waitFor()
    await dialog.getByRole('button', { name: 'It reaches out (pull)' }).click()
    await dialog.getByText('atoll invite prod-eu --context fleet').waitFor()
    await dialog.getByText(`atoll agent prod-eu --hub ${hub.url}/instances/fleet`).waitFor()
    await shot('join')
    assert.deepEqual(await accessibilityFaults(page), [])
  }))

it('watch what a cluster uses', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/clusters/member1')
    await page.locator('.chart path.line').nth(1).waitFor({ state: 'attached', timeout: 30_000 })
    await page.waitForFunction(() => (document.querySelector('.chart path.line')?.getAttribute('d') ?? '').split('L').length > 3, null, { timeout: 60_000 })
    await shot('cluster-usage')
    assert.deepEqual(await accessibilityFaults(page), [])
  }))

it('cordon a cluster and let it work again', () =>
  story(async ({ page, go }) => {
    await go('/i/fleet/clusters')
    const card = page.locator('article', { hasText: 'member3' })
    await card.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Cordon' }).click()
    await card.getByText('Cordoned').waitFor()
    await card.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Uncordon' }).click()
    await card.getByText('Ready', { exact: true }).waitFor()
  }))

it('leaving a cluster lists what it means and asks for the name', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet/clusters/member1')
    await page.getByRole('button', { name: 'Actions' }).click()
    await page.getByRole('menuitem', { name: 'Leave' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/workloads? (are|is) placed here/).waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Leave', exact: true }).isDisabled())
    await shot('leave')
    assert.deepEqual(await accessibilityFaults(page), [])
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }))

it('find an object from the keyboard alone and open a shell in its pod', () =>
  story(async ({ page, go, shot }) => {
    await go('/i/fleet')
    await page.getByRole('heading', { name: 'fleet' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('example')
    await page.getByRole('option', { name: /default\/example/ }).first().waitFor()
    await shot('palette')
    assert.deepEqual(await accessibilityFaults(page), [])
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'example' }).waitFor()
    await page.locator('.pod-dot').first().click()
    await page.getByRole('link', { name: 'Terminal' }).click()
    await page.getByText('Connected').waitFor()
    await page.keyboard.type('echo island-$((40+2))\n')
    await page.locator('.xterm-rows').getByText('island').first().waitFor()
    await shot('terminal')
  }))

it('a reader is offered nothing that would be refused', async () => {
  const account = '/instances/fleet/api/v1/namespaces/default/serviceaccounts'
  await ask(hub, account, { method: 'POST', body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader', namespace: 'default' } } })
  await ask(hub, `${API}/rbac.authorization.k8s.io/v1/clusterroles`, { method: 'POST', body: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'reader' }, rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }] } })
  await ask(hub, `${API}/rbac.authorization.k8s.io/v1/clusterrolebindings`, { method: 'POST', body: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'reader' }, subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace: 'default' }], roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' } } })
  const { status } = await ask(hub, `${account}/reader/token`, { method: 'POST', body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } })
  const view = await openPage(browser, { ...hub, token: status.token })
  // A token of one instance is not known to the hub: the reader goes straight to that instance.
  await view.page.route('**/apis/authentication.k8s.io/v1/selfsubjectreviews', (route) => route.fulfill({ json: { status: { userInfo: { username: 'reader' } } } }))
  await view.page.route(/^https:\/\/[^/]+\/apis\/atoll\.io\//, (route) => route.fulfill({ status: 403, json: { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 } }))
  await view.page.route(/^https:\/\/[^/]+\/(instances\/\w+\/)?version$/, (route) => route.fulfill({ status: 403, json: { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 } }))
  await view.go('/i/fleet/o/apps/v1/deployments/default/example?tab=yaml')
  await view.page.getByText('You may read this but not change it').waitFor()
  assert.equal(await view.page.getByRole('button', { name: 'Scale' }).count(), 0)
  assert.equal(await view.page.getByRole('button', { name: 'Actions' }).count(), 0)
  await view.go('/i/fleet/clusters')
  await view.page.getByText('member1').first().waitFor()
  assert.equal(await view.page.getByRole('button', { name: 'Join a cluster' }).count(), 0)
  await view.shot('reader')
  await view.close()
})
