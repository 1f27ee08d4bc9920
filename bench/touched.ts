import { readFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { compiledServer } from '../test/compiled-server.ts'
import { playing, station } from '../test/events.ts'
import type { FileCoverage } from './coverage.ts'
import { exitOnSignals } from './ending.ts'
import { startNode } from './node.ts'

/*
 * Shows the files and functions of the product that one event passes. The publisher sends the event at QoS 1, one
 * subscriber gets it at QoS 0. `test/soak/bench/touched.test.ts` holds the number of files.
 */

/** Number of events before the counted event. They create the topic, and let the node load its code. */
const eventsBefore = 3
/** Pause after which the node is idle, milliseconds. */
const idleMs = 2_000
/** Time for the node's work after acknowledgement and delivery, milliseconds. */
const afterwardsMs = 20
const declared = /^\s*(?:export )?(?:async )?(?:function\*?|class) (\w+)/

interface TouchedFile {
  path: string
  functions: string[]
}

exitOnSignals()
const node = await startNode()
try {
  const livestream = station()
  const institution = livestream.institution.id
  const publisher = await node.connect(institution)
  const subscriber = await node.connect()
  await subscriber.subscribeAsync('radio/#', { qos: 0 })

  async function sendOne(number: number): Promise<void> {
    const payload = JSON.stringify(playing(livestream, { playlistItemId: `item-${number}` }))
    const received = new Promise((resolve) => subscriber.once('message', resolve))
    await publisher.publishAsync(`inbox/${institution}`, payload, { qos: 1 })
    await received
    await delay(afterwardsMs)
  }

  for (let number = 0; number < eventsBefore; number++) await sendOne(number)
  await node.counting.start()
  await delay(idleMs)
  await node.counting.take()
  await sendOne(eventsBefore)
  // A function counts only if it runs for this event and for the next one: a timer may run during one of them.
  const ranBefore = runIn(await node.counting.take())
  await sendOne(eventsBefore + 1)
  const folder = dirname(await compiledServer())
  const files = touchedFiles(await node.counting.take(), folder, ranBefore)
  await Promise.all([publisher.endAsync(), subscriber.endAsync()])

  for (const { path, functions } of files) console.log(`${path}: ${functions.join(', ')}`)
  const count = files.reduce((sum, { functions }) => sum + functions.length, 0)
  console.log(`\n${files.length} files, ${count} functions`)
} finally {
  await node.stop()
}

/** The functions of the product that have run and are also in `before`, by file. `folder`: that of the bundles. */
function touchedFiles(
  coverage: readonly FileCoverage[],
  folder: string,
  before: ReadonlySet<string>,
): TouchedFile[] {
  const files = new Map<string, string[]>()
  for (const { url, functions } of coverage) {
    if (!url.startsWith('file://') || relative(folder, fileURLToPath(url)).startsWith('..')) continue
    const source = readFileSync(fileURLToPath(url), 'utf8')
    for (const each of functions) {
      if (!hasRun(each) || !before.has(keyOf(url, each))) continue
      const above = source.slice(0, each.ranges[0]?.startOffset)
      const path = moduleOf(above)
      if (path.startsWith('node_modules')) continue
      files.set(path, [...(files.get(path) ?? []), each.functionName || nameAround(above)])
    }
  }
  return [...files]
    .map(([path, functions]) => ({ path, functions }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** The module in which a bundle ends: a comment names each (`// broker/publish.ts`). */
function moduleOf(bundle: string): string {
  return [...bundle.matchAll(/^ *\/\/ ([\w@./-]+\.[cm]?[jt]s)$/gm)].at(-1)?.[1] ?? 'node_modules'
}

/** The functions that have run, by file and place. */
function runIn(coverage: readonly FileCoverage[]): Set<string> {
  return new Set(
    coverage.flatMap(({ url, functions }) => functions.filter(hasRun).map((each) => keyOf(url, each))),
  )
}

function keyOf(url: string, { ranges: [whole] }: FunctionCoverage): string {
  return `${url} ${whole?.startOffset}`
}

type FunctionCoverage = FileCoverage['functions'][number]

function hasRun({ ranges: [whole] }: FunctionCoverage): boolean {
  return whole !== undefined && whole.count > 0
}

/** `(in NAME)`: what to call a function without a name, inside of NAME, that begins where `above` ends. */
function nameAround(above: string): string {
  const lines = above.split('\n')
  const indentation = indentationOf(lines.at(-1) ?? '')
  const around = lines.findLast((line) => indentationOf(line) < indentation && declared.test(line))
  return `(in ${declared.exec(around ?? '')?.[1] ?? 'the file'})`
}

function indentationOf(line: string): number {
  return line.search(/\S|$/)
}
