import { readFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { compiledServer } from '../test/compiled-server.ts'
import { playing, station } from '../test/events.ts'
import type { FileCoverage } from './coverage.ts'
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
  const root = dirname(await compiledServer())
  const files = touchedFiles(await node.counting.take(), root, ranBefore)
  await Promise.all([publisher.endAsync(), subscriber.endAsync()])

  for (const { path, functions } of files) console.log(`${path}: ${functions.join(', ')}`)
  const count = files.reduce((sum, { functions }) => sum + functions.length, 0)
  console.log(`\n${files.length} files, ${count} functions`)
} finally {
  await node.stop()
}

/** The functions of the product that have run and are also in `before`, by file. */
function touchedFiles(
  coverage: readonly FileCoverage[],
  root: string,
  before: ReadonlySet<string>,
): TouchedFile[] {
  return coverage
    .filter(({ url }) => url.startsWith('file://'))
    .map(({ url, functions }) => ({
      file: fileURLToPath(url),
      ran: functions.filter((each) => hasRun(each) && before.has(keyOf(url, each))),
    }))
    .filter(({ file, ran }) => isProduct(relative(root, file)) && ran.length > 0)
    .map(({ file, ran }) => ({
      path: relative(root, file).replace(/js$/, 'ts'),
      functions: namesOf(ran, readFileSync(file, 'utf8')),
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
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

function isProduct(path: string): boolean {
  return !path.startsWith('..') && !path.startsWith('node_modules')
}

type FunctionCoverage = FileCoverage['functions'][number]

function hasRun({ ranges: [whole] }: FunctionCoverage): boolean {
  return whole !== undefined && whole.count > 0
}

/** Names of functions. `(in NAME)`: a function without a name, inside of NAME. */
function namesOf(functions: readonly FunctionCoverage[], source: string): string[] {
  return functions.map(({ functionName, ranges: [whole] }) => {
    if (functionName !== '') return functionName
    const before = source.slice(0, whole?.startOffset).split('\n')
    const indentation = indentationOf(before.at(-1) ?? '')
    const around = before.findLast((line) => indentationOf(line) < indentation && declared.test(line))
    return `(in ${declared.exec(around ?? '')?.[1] ?? 'the file'})`
  })
}

function indentationOf(line: string): number {
  return line.search(/\S|$/)
}
