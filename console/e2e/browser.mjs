// Chromium with traps: errors in its console, and what axe finds.

import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const OUT = new URL('./out/', import.meta.url).pathname
mkdirSync(OUT, { recursive: true })
/** Pictures of the documentation; written anew when ATOLL_WRITE_DOCS=1. */
const DOCS = new URL('../../docs/images/', import.meta.url).pathname
const PICTURES = new Set(['home', 'overview', 'tree', 'tree-dark', 'refused', 'differences', 'preview', 'clusters-500', 'cluster-usage', 'home-zh', 'create-form', 'editor-completion', 'moved', 'audit', 'lease-calendar', 'rows-100000', 'policy-change'])

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  })
}

/** A page that is signed in and collects whatever goes wrong in it. */
export async function openPage(browser, hub, { width = 1440, height = 900, dark = false, language = 'en', signedIn = true } = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', locale: language === 'zh' ? 'zh-CN' : 'en-US' })
  if (signedIn) await context.addInitScript((token) => sessionStorage.getItem('atoll.token') ?? sessionStorage.setItem('atoll.token', token), hub.token)
  const page = await context.newPage()
  const faults = []
  page.on('console', (message) => {
    // The browser itself reports answers such as 404; the pages show those to the user.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(`${error.name}: ${error.message}`))
  page.on('dialog', (dialog) => {
    if (dialog.type() === 'beforeunload') return dialog.accept()
    faults.push(`dialog: ${dialog.message()}`)
    dialog.dismiss()
  })
  return {
    page,
    faults,
    go: (path) => page.goto(`${hub.url}/console${path}`),
    /** Until nothing on the page is still on its way. */
    settled: () => page.waitForFunction(() => document.querySelector('.content h1') !== null && document.querySelectorAll('.content .bone').length === 0),
    shot: async (name) => {
      await page.screenshot({ path: `${OUT}${name}.png` })
      if (process.env.ATOLL_WRITE_DOCS === '1' && PICTURES.has(name)) copyFileSync(`${OUT}${name}.png`, `${DOCS}${name}.png`)
    },
    close: () => context.close(),
  }
}

/** Serious and critical faults that axe finds, in a line each. */
export async function accessibilityFaults(page) {
  // The content policy forbids scripts put into the page; the debugger's world is not under it.
  await page.evaluate(axe)
  const result = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }))
  return result.violations
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 4).map((node) => `${node.target.join(' ')} ${node.failureSummary.split('\n')[1] ?? ''}`).join(' | ')}`)
}
