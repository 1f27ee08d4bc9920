import { randomInt } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { CurrentCa } from '../../config/ca-files.ts'
import { eventKinds } from '../../event/kind.ts'
import type { Entry } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import { isHistory } from '../../journal/keeping.ts'
import { follow } from '../../on-air/follow.ts'
import { createParts } from '../../on-air/parts.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { ShownElement } from '../outputs/output.ts'
import { type ConfiguredOutput, outputs } from '../outputs/outputs.ts'
import type { Leases } from '../runner/leases.ts'
import { ageOf } from '../worth/worth.ts'
import { createLane, keptLines, type Lane, type LaneState, type LogLine } from './lane.ts'
import { createOthersOutputs } from './others-outputs.ts'
import { createSenders, type OutputAttempt } from './senders/senders.ts'
import { createSlots } from './slots.ts'
import { wantedOf } from './wanted.ts'

/** A livestream of an output, as operators see it. */
export interface ShownLane extends LaneState {
  name: string
  driver: string
  livestreamId: string
  /** What the other side calls the livestream. */
  there: string
}

/** An output has at most so many attempts under way. One that hangs holds back itself. */
const mostAtOnce = 64
/** Nodes that could not say which outputs they have are asked again after this, milliseconds. */
const compareMs = 15_000
/** A test lasts for one attempt, and may wait for the one before it, milliseconds. */
const longestTestMs = 45_000
/** This many failures in a row are logged once. */
const loggedFailures = 3

type States = Parameters<typeof createParts>[0] & { journal: Journal }

/** Lanes by livestream. */
type LanesOf = Map<string, Lane[]>

interface Followed {
  /** What was accepted up to here counts. */
  position: () => number
  end: () => void
}

/**
 * Brings outputs to what livestreams show (open.md §5): docs/decisions, "Outputs follow the state". Each livestream of an
 * output is a lane of its own.
 */
export function createShowing(
  parts: States & {
    configured: readonly ConfiguredOutput[]
    history: { positionAt(time: number): Promise<number> }
    retained: { onSilentChange(listener: (topic: string) => void): void }
    leases: Pick<Leases, 'isOwnWithout' | 'take' | 'holds' | 'release' | 'onFreed'>
    calls: Calls
    ca: CurrentCa | undefined
    version: string
    deadlineMs?: number
    clock: () => number
    steadyClock: () => number
    log: Log
    metrics: Metrics
  },
) {
  const { configured, journal, history, retained, leases, calls, clock, steadyClock } = parts
  const { log, metrics } = parts
  const senders = createSenders(parts)
  const stopping = new AbortController()
  // Every attempt listens to it. With its usual limit of listeners, Node would warn of a leak.
  setMaxListeners(0, stopping.signal)
  const states = createParts(parts)
  const lanes = new Map<string, { lane: Lane; settings: ConfiguredOutput; livestreamId: string }>()
  /** By delay, milliseconds: outputs with the same delay follow the journal together. */
  const followed = new Map<number, { ofLivestream: LanesOf; position: () => number; end?: () => void }>()
  for (const settings of configured) openOutput(settings)
  let comparing: NodeJS.Timeout | undefined
  const others = createOthersOutputs(configured, calls)
  calls.serve('outputs', here)
  calls.serve('output-log', (key) => lanes.get(String(key))?.lane.log() ?? null)
  calls.serve('output-test', (asked) => {
    const { key, title } = asked as { key: string; title: string }
    return testHere(key, title)?.catch(() => undefined)
  })

  return {
    async start(): Promise<void> {
      for (const [delayMs, ofDelay] of followed)
        Object.assign(ofDelay, await followJournal(delayMs, ofDelay.ofLivestream))
      retained.onSilentChange((topic) => {
        const livestreamId = topic.split('/')[1] ?? ''
        for (const { ofLivestream } of followed.values())
          for (const lane of ofLivestream.get(livestreamId) ?? []) lane.wake()
      })
      leases.onFreed(
        (key) => lanes.get(key)?.lane.wake(),
        () => void compare(),
      )
      await compare()
    },

    /** Whether a lease is that of a lane, of this node or of others. */
    isLane: (lease: string): boolean => lease.startsWith(lanePrefix),

    /** Whether this node has the lane of a lease in its configuration. */
    has: (lease: string): boolean => lanes.has(lease),

    /** All lanes. Of a lane, what the node says that delivers it. */
    async list(): Promise<ShownLane[]> {
      const theirs = await calls.answersOfOthers<Here>('outputs', null)
      const own = new Map([...theirs, here()].flatMap((one) => one.lanes))
      return [...lanes].map(([name, { lane, settings, livestreamId }]) => ({
        name: settings.name,
        driver: settings.driver,
        livestreamId,
        there: settings.livestreams[livestreamId] ?? '',
        ...(own.get(name) ?? lane.state()),
      }))
    },

    /** How many lanes of this node fail. */
    failing: (): number => here().lanes.filter(([, { state }]) => state === 'retrying').length,

    /** The delivery log of a lane on all nodes, newest first. Undefined: there is no such lane. */
    async log(name: string, livestreamId: string): Promise<LogLine[] | undefined> {
      const key = laneOf(name, livestreamId)
      const found = lanes.get(key)
      if (!found) return undefined
      const theirs = await calls.answersOfOthers<LogLine[]>('output-log', key)
      const all = [found.lane.log(), ...theirs].flat()
      return all.sort((a, b) => (a.time < b.time ? 1 : -1)).slice(0, keptLines)
    },

    /**
     * Sends a made-up title, on the node that delivers: no two deliveries are under way at once. What plays comes back
     * 10 s later. `unknown`: there is no such lane. Undefined: no node delivers it at the moment.
     */
    async test(name: string, livestreamId: string): Promise<OutputAttempt | 'unknown' | undefined> {
      const key = laneOf(name, livestreamId)
      if (!lanes.has(key)) return 'unknown'
      const title = `Test ${new Date(clock()).toISOString().slice(11, 19)} äöü Ж ‘’`
      const attempt = testHere(key, title)
      if (attempt) return attempt
      const theirs = (await calls.askOthers('outputs', null)) as [node: string, lanes: Here | null][]
      const [node] = theirs.find(([, here]) => here?.lanes.some(([held]) => held === key)) ?? []
      if (node === undefined) return undefined
      const answer = await calls.ask(node, 'output-test', { key, title }, longestTestMs)
      return (answer ?? undefined) as OutputAttempt | undefined
    },

    /** Starts no more attempts, and cuts those under way short. */
    async close(): Promise<void> {
      stopping.abort()
      clearTimeout(comparing)
      for (const { end } of followed.values()) end?.()
      for (const { lane } of lanes.values()) lane.end()
      await Promise.all([...lanes.values()].map(({ lane }) => lane.ended()))
      senders.close()
      for (const key of lanes.keys()) await leases.release(key).catch(() => undefined)
    },
  }

  /** Makes the lanes of an output. */
  function openOutput(settings: ConfiguredOutput): void {
    const { name, livestreams, delay = 0 } = settings
    const output = outputs.find((one) => one.name === settings.driver)
    if (!output) throw new Error(`there is no driver ${settings.driver}`)
    const slots = createSlots(mostAtOnce)
    const ofDelay = followed.get(delay) ?? { ofLivestream: new Map(), position: journal.head }
    followed.set(delay, ofDelay)
    for (const [livestreamId, there] of Object.entries(livestreams)) {
      const key = laneOf(name, livestreamId)
      const about = { output: name, livestreamId }
      /** The element that the lane knows, and since when: its age makes no jump with the clock. */
      let known = { position: 0, seen: 0 }
      const lane = createLane({
        output,
        settings,
        there,
        wanted: async () => {
          const now = clock() - delay
          const moment = { position: ofDelay.position(), now }
          const shown = wantedOf(
            await states.of(livestreamId, moment),
            output,
            settings,
            livestreamId,
            now,
            ({ position, at }) => {
              const elapsed = performance.now()
              if (known.position !== position) known = { position, seen: elapsed }
              return ageOf({ at: at + delay, seen: known.seen }, { steady: steadyClock(), elapsed })
            },
          )
          const ahead = (await states.ahead(livestreamId, moment)).map(({ time }) => time)
          return { ...shown, until: Math.min(shown.until, ...ahead) + delay }
        },
        mayDeliver: () => mayDeliver(key),
        senders,
        slots,
        signal: stopping.signal,
        clock,
        random: () => randomInt(1_000) / 1_000,
        passedOver: (count) => metrics.deliveriesStale.inc(count),
        noted({ result, reason }, failures) {
          metrics.outputAttempts.inc({ result })
          if (failures === loggedFailures) log.warn({ ...about, reason }, 'an output does not take the title')
        },
      })
      ofDelay.ofLivestream.set(livestreamId, [...(ofDelay.ofLivestream.get(livestreamId) ?? []), lane])
      lanes.set(key, { lane, settings, livestreamId })
    }
  }

  /** Calls back for each message of a livestream, `delayMs` after its acceptance. */
  async function followJournal(delayMs: number, ofLivestream: LanesOf): Promise<Followed> {
    const deliver = (entry: Entry): undefined => {
      if (!isHistory(entry)) return undefined
      const began = nowSuffixes.some((suffix) => entry.topic.endsWith(suffix))
      const hasBegun = began && (entry.retained?.time ?? 0) <= clock() - delayMs
      for (const lane of ofLivestream.get(entry.stream ?? '') ?? [])
        if (hasBegun) lane.began()
        else lane.wake()
      return undefined
    }
    // Memory has what is appended now: there is nothing to read.
    if (delayMs === 0) return { position: journal.head, end: journal.onEach(deliver) }
    return follow({
      journal,
      clock,
      delayMs,
      from: (await history.positionAt(clock() - delayMs)) - 1,
      deliver,
      missed: () => {
        for (const lane of [...ofLivestream.values()].flat()) lane.wake()
      },
      failed: (err) => log.warn({ err }, 'outputs wait for the store'),
    })
  }

  /** Undefined: this node does not deliver the lane. */
  function testHere(key: string, title: string): Promise<OutputAttempt | undefined> | undefined {
    const found = lanes.get(key)
    if (!found || !leases.holds(key)) return undefined
    return found.lane.test(madeUp(found.livestreamId, title, clock()))
  }

  function here(): Here {
    const own = [...lanes].filter(([key]) => leases.holds(key))
    return { lanes: own.map(([key, { lane }]) => [key, lane.state()]) }
  }

  /** Whether this node delivers a lane. A node that no longer does lets the next one. */
  async function mayDeliver(key: string): Promise<boolean> {
    const output = lanes.get(key)?.settings.name ?? ''
    if (leases.isOwnWithout(key, (node) => others.lacks(node, output))) return leases.take(key)
    await leases.release(key)
    return false
  }

  /** Nodes have joined, or are gone. */
  async function compare(): Promise<void> {
    if (lanes.size === 0) return
    clearTimeout(comparing)
    wakeAll()
    const isKnown = await others.ask().catch((err: unknown) => {
      log.warn({ err }, 'outputs wait for the store')
      return false
    })
    wakeAll()
    if (!isKnown && !stopping.signal.aborted) comparing = setTimeout(() => void compare(), compareMs).unref()
  }

  function wakeAll(): void {
    for (const { lane } of lanes.values()) lane.wake()
  }
}

/** What each node tells the others. */
interface Here {
  lanes: [key: string, state: LaneState][]
}

const nowSuffixes = eventKinds.filter(({ isNow }) => isNow).map(({ suffix }) => `/${suffix}`)

const lanePrefix = 'output:'

/** The name of the lane of an output: also that of its lease. */
function laneOf(name: string, livestreamId: string): string {
  return `${lanePrefix}${name}:${livestreamId}`
}

/** An element of a test. Its title has characters at which carriers stumble. */
function madeUp(livestreamId: string, title: string, now: number): Omit<ShownElement, 'toggle'> {
  const start = new Date(now).toISOString()
  return { livestreamId, artist: 'Now-Playing Hub', title, type: 'music', start, length: 10 }
}
