import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { eventTypes } from '../client/build/event-types.ts'
import { pythonLibrary } from '../client/build/python-types.ts'
import { clientErrorsPage } from './client-errors.ts'
import { errorsPage } from './errors.ts'
import { eventKindsPage } from './event-kinds.ts'
import { hubctlPage } from './hubctl.ts'
import { logPage } from './log.ts'
import { metricsPage } from './metrics.ts'
import { outputsPage } from './outputs.ts'
import { markdownOf, type ReferencePage } from './page.ts'
import { settingsPage } from './settings.ts'
import { storeKeysPage } from './store-keys.ts'

/*
 * `npm run docs`: writes `docs/reference/`, a part of `docs/outputs.md`, and the types and kinds of events in the libraries of clients, from the
 * tables of the code. With `--check` it writes nothing, names the files that differ, and ends with 1 if there are any:
 * `npm run check` runs it so.
 */

const pages: readonly ReferencePage[] = [
  eventKindsPage(),
  settingsPage(),
  hubctlPage(),
  metricsPage(),
  logPage(),
  errorsPage(),
  clientErrorsPage(),
  storeKeysPage(),
]

const index: ReferencePage = {
  name: 'README',
  title: 'Reference',
  about: 'Every name that the hub knows, by kind. The guides are in [the documentation](README.md).',
  text: pages.map(({ name, title, about }) => `- [${title}](reference/${name}.md): ${about}`).join('\n'),
}

const project = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(`${project}${path}`, 'utf8')
const [folder, types, library] = ['docs/reference/', 'client/events.ts', 'client/python/now_playing_hub.py']
const outputsDocs = 'docs/outputs.md'
const wanted = new Map([
  ...[index, ...pages].map((page) => [`${folder}${page.name}.md`, markdownOf(page)] as const),
  [types, eventTypes()],
  [library, pythonLibrary(read(library))],
  [outputsDocs, outputsPage(read(outputsDocs))],
])

mkdirSync(`${project}${folder}`, { recursive: true })
const paths = [
  ...readdirSync(`${project}${folder}`).map((name) => `${folder}${name}`),
  types,
  library,
  outputsDocs,
]
const found = new Map(paths.map((path) => [path, read(path)]))
const changed = [...wanted].filter(([path, text]) => found.get(path) !== text)
const removed = paths.filter((path) => !wanted.has(path))

if (process.argv.includes('--check')) {
  for (const path of [...changed.map(([path]) => path), ...removed]) {
    console.error(`${path} is not what the tables say: npm run docs writes it`)
    process.exitCode = 1
  }
} else {
  for (const [path, text] of changed) writeFileSync(`${project}${path}`, text)
  for (const path of removed) rmSync(`${project}${path}`)
}
