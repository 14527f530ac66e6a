/// <reference types="vitest/config" />
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** Puts a .gz and a .br beside every file, for the server to pass on as they are. */
function precompressed(): Plugin {
  return {
    name: 'precompressed',
    apply: 'build',
    writeBundle(options) {
      const out = options.dir ?? 'dist'
      for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || /\.(gz|br)$/.test(entry.name)) continue
        const path = join(entry.parentPath, entry.name)
        const bytes = readFileSync(path)
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }))
      }
    },
  }
}

/** Styles come after what is seen first, which then need not wait for them. */
function stylesLast(): Plugin {
  return {
    name: 'styles-last',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html) {
        const styles = html.match(/<link rel="stylesheet"[^>]*>/g) ?? []
        return styles.reduce((page, link) => page.replace(link, ''), html).replace('</body>', `${styles.join('')}</body>`)
      },
    },
  }
}

const hub = process.env.ATOLL_URL ?? 'https://127.0.0.1:7443'
const through = { target: hub, secure: false, changeOrigin: false, ws: true }

export default defineConfig({
  base: '/console/',
  plugins: [react(), stylesLast(), precompressed()],
  build: { target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: false },
  server: { proxy: { '/api': through, '/apis': through, '/instances': through, '/version': through, '/readyz': through, '/management': through } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
})
