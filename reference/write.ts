import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { clientErrorsPage } from './client-errors.ts'
import { errorsPage } from './errors.ts'
import { hubctlPage } from './hubctl.ts'
import { logPage } from './log.ts'
import { metricsPage } from './metrics.ts'
import { markdownOf, type Page } from './page.ts'
import { settingsPage } from './settings.ts'
import { storeKeysPage } from './store-keys.ts'

/*
 * `npm run docs`: writes `docs/reference/` from the tables of the code. With `--check` it writes nothing, names the
 * pages that differ, and ends with 1 if there are any: `npm run check` runs it so.
 */

const pages: readonly Page[] = [
  settingsPage(),
  hubctlPage(),
  metricsPage(),
  logPage(),
  errorsPage(),
  clientErrorsPage(),
  storeKeysPage(),
]

const index: Page = {
  name: 'README',
  title: 'Reference',
  about: 'Every name that the hub knows, by kind. The guides are in [the documentation](README.md).',
  text: pages.map(({ name, title, about }) => `- [${title}](reference/${name}.md): ${about}`).join('\n'),
}

const folder = fileURLToPath(new URL('../docs/reference/', import.meta.url))
const wanted = new Map([index, ...pages].map((page) => [`${page.name}.md`, markdownOf(page)]))

mkdirSync(folder, { recursive: true })
const found = new Map(readdirSync(folder).map((name) => [name, readFileSync(`${folder}${name}`, 'utf8')]))
const changed = [...wanted].filter(([name, text]) => found.get(name) !== text)
const removed = [...found.keys()].filter((name) => !wanted.has(name))

if (process.argv.includes('--check')) {
  for (const name of [...changed.map(([name]) => name), ...removed]) {
    console.error(`docs/reference/${name} is not what the tables say: npm run docs writes it`)
    process.exitCode = 1
  }
} else {
  for (const [name, text] of changed) writeFileSync(`${folder}${name}`, text)
  for (const name of removed) rmSync(`${folder}${name}`)
}
