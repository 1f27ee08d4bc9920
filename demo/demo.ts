import { setTimeout as sleep } from 'node:timers/promises'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { budgetMs } from '../telemetry/latency.ts'
import { type Institution, startBroadcaster } from './broadcasters.ts'
import { startCovers } from './covers.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type DemoNode, startNode } from './node.ts'
import { readAllStations, readStations, type Station } from './programme.ts'
import { createRunningOrder } from './running-order.ts'
import { createScreen, formatMs, type Screen } from './screen.ts'
import { createStop, type Stop } from './stop.ts'
import { type Subscriber, startSubscriber } from './subscribers.ts'

/** Livestreams that come on air per second at the beginning, so that the page fills within a few seconds. */
const openingRate = 10
/** How long the last events may take to arrive, milliseconds. */
const settleMs = 30_000

interface Options {
  /** Seconds after which the demonstration ends. Absent: Ctrl-C ends it. */
  seconds?: number
  /** Events per second. */
  rate: number
}

process.exit(await main(process.argv.slice(2)))

/** `npm run demo`. Returns the exit code. */
async function main(argv: string[]): Promise<number> {
  const options = readOptions(argv)
  if (typeof options === 'number') return options
  try {
    return await demonstrate(options, createStop())
  } catch (error) {
    process.stderr.write(`the demonstration failed: ${error instanceof Error ? error.message : error}\n`)
    return 1
  }
}

/** Returns the exit code. */
async function demonstrate(options: Options, stop: Stop): Promise<number> {
  const node = await startNode()
  const covers = await startCovers(node)
  const stations = readStations(covers.urlOf)
  const others = othersThan(stations, readAllStations(covers.urlOf))
  const [{ livestreams }] = stations
  const subscribers: Subscriber[] = [
    { name: 'app', filter: 'radio/#' },
    { name: 'car', filter: `radio/${livestreams[0].id}/#` },
  ]
  const screen = createScreen(process.stdout, titlesOf([...stations, ...others]))
  const ledger = createLedger()
  try {
    void node.exited.then((code) => stop.because(`the node ended with ${code}`))
    const parts = { node, subscribers, screen, ledger, stop }
    const { listening, broadcasters } = await stop.unlessBroken(connectAll([...stations, ...others], parts))
    introduce(screen, node, broadcasters.size, options)

    const order = createRunningOrder(
      stations,
      others,
      ({ livestreams: [{ institution }] }, event, expected) =>
        broadcasters.get(institution.id)?.publish(event, expected),
    )
    await Promise.all([
      repeat(order.open, { ...options, rate: openingRate }, stop.signal),
      repeat(order.advance, options, stop.signal),
    ])
    if (stop.fault() === undefined) {
      order.complete()
      await ledger.settled(settleMs)
    }
    const fault = stop.fault()
    const problems = [...(fault === undefined ? [] : [fault]), ...ledger.problems()]
    summarise(screen, ledger, problems)
    stop.finished()
    // Closing the clients would wait for missing reports.
    if (problems.length > 0) return 1
    await Promise.all([...listening, ...broadcasters.values()].map((client) => client.close()))
    return 0
  } finally {
    stop.finished()
    covers.close()
    await node.stop()
  }
}

interface Parts {
  node: DemoNode
  subscribers: readonly Subscriber[]
  screen: Screen
  ledger: Ledger
  stop: Stop
}

/** Connects the listeners first, so that they do not miss the first event. */
async function connectAll(stations: readonly Station[], parts: Parts) {
  const listening = await startSubscribers(parts)
  return { listening, broadcasters: await startBroadcasters(institutionsOf(stations), parts) }
}

function startSubscribers({ node, subscribers, screen, ledger, stop }: Parts) {
  const parts = { broker: node, ledger, show: screen.arrival, lost: stop.because }
  return Promise.all(
    subscribers.map(async (subscriber) => {
      const login = await node.subscriber(subscriber.name, subscriber.filter)
      return startSubscriber(subscriber, login, parts)
    }),
  )
}

async function startBroadcasters(
  institutions: readonly Institution[],
  { node, subscribers, screen, ledger, stop }: Parts,
) {
  const parts = { broker: node, ledger, subscribers, show: screen.feedback, lost: stop.because }
  const started = institutions.map(async (institution) => {
    const login = await node.publisher(institution.acronym.toLowerCase(), institution.id)
    return [institution.id, await startBroadcaster(institution, login, parts)] as const
  })
  return new Map(await Promise.all(started))
}

async function repeat(act: () => void, { seconds, rate }: Options, signal: AbortSignal): Promise<void> {
  const begun = performance.now()
  const end = begun + (seconds ?? Number.POSITIVE_INFINITY) * 1000
  for (let count = 1; !signal.aborted; count++) {
    const due = begun + (count * 1000) / rate
    if (due > end) return
    // `sleep` rejects when `signal` aborts it. The loop then ends.
    await sleep(Math.max(due - performance.now(), 0), undefined, { signal }).catch(() => {})
    if (!signal.aborted) act()
  }
}

function introduce(screen: Screen, node: DemoNode, broadcasters: number, { seconds }: Options): void {
  const until = seconds === undefined ? 'Ctrl-C ends it' : `for ${seconds} s`
  screen.line(
    `A node on port ${node.mqttPort}, ${broadcasters} broadcasters and 2 listeners, all over TLS; ${until}.`,
  )
  screen.line(`What is on air: https://localhost:${node.httpsPort}/ (accept the certificate of this node)`)
  screen.line('app  reads radio/#, everything')
  screen.line('car  reads one livestream')
  screen.line('fb   is the feedback a broadcaster gets')
  screen.line('')
}

function summarise(screen: Screen, ledger: Ledger, problems: readonly string[]): void {
  const { published, accepted, blocked, invalid, arrived, awaited } = ledger.counts
  const { receipt, report } = ledger.latency()
  screen.heading('Summary')
  screen.table([
    ['events published', String(published)],
    ['accepted', String(accepted)],
    ['blocked', `${blocked}  a foreign livestream`],
    ['invalid', `${invalid}  a malformed event`],
    ['arrivals', `${arrived} of ${awaited}`],
    ['publish to receipt', `p50 ${formatMs(receipt.p50)}, p99 ${formatMs(receipt.p99)} of ${budgetMs} ms`],
    [
      'publish to report',
      `p50 ${formatMs(report.p50)}, p99 ${formatMs(report.p99)}, then the event is on disk`,
    ],
  ])
  if (problems.length === 0) {
    screen.verdict('Everything accepted arrived; what had to be refused was refused.', true)
    return
  }
  screen.verdict(`Something is missing (${problems.length}):`, false)
  for (const problem of problems.slice(0, 20)) screen.line(`  ${problem}`)
}

/** The stations of livestreams that none of `stations` has. */
function othersThan(stations: readonly Station[], all: readonly Station[]): Station[] {
  const taken = new Set(stations.flatMap(({ livestreams }) => livestreams.map(({ id }) => id)))
  return all.filter(({ livestreams: [{ id }] }) => !taken.has(id))
}

function titlesOf(stations: readonly Station[]): (livestreamId: string) => string {
  const livestreams = stations.flatMap((station) => station.livestreams)
  const titles = new Map(livestreams.map(({ id, title }) => [id, title]))
  return (id) => titles.get(id) ?? id
}

function institutionsOf(stations: readonly Station[]): Institution[] {
  const institutions = stations.map(({ livestreams: [{ institution }] }) => institution)
  return [...new Map(institutions.map((institution) => [institution.id, institution])).values()]
}

/** Returns the options, or the exit code after `--help` or a wrong option. */
function readOptions(argv: string[]): Options | number {
  const program = new Command('npm run demo --')
    .description('Shows a node of the now-playing hub at work with sample broadcasters and listeners.')
    .option('--seconds <n>', 'end after n seconds instead of on Ctrl-C', numberFrom('seconds', 1, 86_400))
    .option('--rate <n>', 'events per second', numberFrom('rate', 0.1, 500), 4)
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'demo: ')) })
  try {
    return program.parse(argv, { from: 'user' }).opts<Options>()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}

function numberFrom(name: string, least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`${name} must be a number from ${least} to ${most}.`)
  }
}
