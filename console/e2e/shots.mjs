// Pictures of the main pages, to be looked at.

import { launch, openPage } from './browser.mjs'
import { openHub } from './hub.mjs'

const wanted = process.argv.slice(2)
const PAGES = {
  home: '/', overview: '/i/fleet', clusters: '/i/fleet/clusters', cluster: '/i/fleet/clusters/member1', workloads: '/i/fleet/r/apps/v1/deployments', kinds: '/i/fleet/kinds',
  tree2: '/i/fleet/o/apps/v1/deployments/default/checkout', tree3: '/i/fleet/o/apps/v1/deployments/default/trainer', tree4: '/i/fleet/o/apps/v1/deployments/default/cart', tree5: '/i/fleet/o/core/v1/configmaps/default/alone', fleetlogs: '/i/fleet/o/apps/v1/deployments/default/web?tab=logs', tree: '/i/fleet/o/apps/v1/deployments/default/web?tab=tree', summary: '/i/fleet/o/apps/v1/deployments/default/web?tab=summary', yaml: '/i/fleet/o/apps/v1/deployments/default/web?tab=yaml',
  propagation: '/i/fleet/propagation', policies: '/i/fleet/policies', policy: '/i/fleet/policies/new', nodes: '/i/compute/nodes', activity: '/i/fleet/activity', access: '/i/fleet/access', settings: '/settings',
  search: '/i/fleet/search', members: '/i/fleet/r/core/v1/pods?m=member1',
}
const DEEDS = {
  palette: ['/i/fleet', async (page) => { await page.keyboard.press('Control+k'); await page.keyboard.type('web', { delay: 30 }) }],
  drawer: ['/i/fleet/o/apps/v1/deployments/default/web?tab=tree', async (page) => { await page.locator('.lane-cells').first().locator('button.node').nth(1).click() }],
  unfolded: ['/i/fleet/o/apps/v1/deployments/default/web?tab=tree', async (page) => { await page.locator('.fold').first().click() }],
  create: ['/i/fleet/r/apps/v1/deployments', async (page) => { await page.getByRole('button', { name: 'Create' }).click() }],
  edit: ['/i/fleet/o/apps/v1/deployments/default/web?tab=yaml', async (page) => { await page.locator('.cm-content').click(); await page.keyboard.press('Control+End'); await page.keyboard.type('# changed'); await page.getByRole('button', { name: 'Show changes' }).click() }],
  logs: ['/i/fleet/r/core/v1/pods?m=member1', async (page) => { await page.locator('a.name').first().click(); await page.getByRole('link', { name: 'Logs' }).click() }],
  terminal: ['/i/fleet/r/core/v1/pods?m=member1', async (page) => { await page.locator('a.name').first().click(); await page.getByRole('link', { name: 'Terminal' }).click(); await page.waitForTimeout(1500); await page.keyboard.type('ls -la /\n') }],
  leave: ['/i/fleet/clusters', async (page) => { await page.getByRole('button', { name: 'Actions' }).first().click(); await page.getByRole('menuitem', { name: 'Leave' }).click() }],
  join: ['/i/fleet/clusters', async (page) => { await page.getByRole('button', { name: 'Join a cluster' }).click() }],
}
const hub = await openHub()
const browser = await launch()
const dark = process.env.DARK === '1'
const language = process.env.LANGUAGE_SHOT ?? 'en'
const width = Number(process.env.WIDTH ?? 1440)
const view = await openPage(browser, hub, { dark, language, width, height: Number(process.env.HEIGHT ?? 900) })
for (const [name, path] of Object.entries(PAGES)) {
  if (wanted.length && !wanted.includes(name)) continue
  await view.go(path)
  await view.page.waitForTimeout(1600)
  await view.shot(`${name}${dark ? '-dark' : ''}${language === 'zh' ? '-zh' : ''}${width < 800 ? '-phone' : ''}`)
}
for (const [name, [path, deed]] of Object.entries(DEEDS)) {
  if (wanted.length && !wanted.includes(name)) continue
  await view.go(path)
  await view.page.waitForTimeout(1200)
  await deed(view.page)
  await view.page.waitForTimeout(1500)
  await view.shot(`${name}${dark ? '-dark' : ''}`)
}
console.log(view.faults.join('\n') || 'no faults')
await browser.close()
await hub.close()
