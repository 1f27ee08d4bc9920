import { setTimeout as delay } from 'node:timers/promises'
import type { Post } from '../../delivery/webhook/webhook.ts'
import { answer } from '../answer.ts'
import { readFeed } from '../peers/ground.ts'
import { eventAt } from './events.ts'
import { type Hub, openHub } from './hub.ts'

/* A process with a hub whose clock runs faster than real time. */

/** Maximum number of events in flight at the same time. */
const atOnce = 100
/**
 * Number of events between two removals of expired data: half a minute at ten events a second. Not a time: at fewer
 * events a second, a removal every half minute would be most of the work.
 */
const sweepEvery = 300
/** Interval on the hub's clock between two calls of `tidy`, milliseconds. */
const tidyEveryMs = 60_000

let now = 0
/** Time of the next event, on the same clock as `now`. */
let nextAt = 0
let sweptAt = 0
let tidiedAt = 0
let hub: Hub | undefined
let livestreams: ReturnType<typeof livestreamsOf> = []
let dead: ReadonlySet<string> = new Set()
/** Number of livestreams that have dead webhooks. */
let busy = 0
/** Numbers of events and pushes since the beginning. */
let events = 0
let pushes = 0
let longestSweep = 0

export const commands = {
  /** Opens a hub whose clock begins at `at`. */
  async open(of: {
    env: Record<string, string>
    feedPath: string
    at: number
    deadUrl: string
  }): Promise<void> {
    now = of.at
    nextAt = of.at
    tidiedAt = of.at
    livestreams = livestreamsOf(of.feedPath)
    const post: Post = async ({ url }) => {
      pushes++
      if (url === of.deadUrl) return { result: 'failed', status: null, reason: 'ECONNREFUSED' }
      return { result: 'acknowledged', status: 204, reason: null }
    }
    hub = await openHub({ env: of.env, clock: () => now, post })
  },

  /** Subscribes `count` webhooks to the livestreams in turn. The first `dead` refuse every push. */
  async subscribe(of: { count: number; dead: number; okUrl: string; deadUrl: string }): Promise<void> {
    const names = new Set<string>()
    for (let index = 0; index < of.count; index++) {
      const { id: topicId, institution } = at(livestreams, index)
      const url = index < of.dead ? of.deadUrl : of.okUrl
      const about = { topicId, url, contact: 'bench@radio.example', createdBy: 'bench' }
      const added = await living().subscriptions.add({ ...about, institutionId: institution.id })
      if (added && index < of.dead) names.add(added.name)
    }
    dead = names
    busy = Math.min(of.dead, livestreams.length)
  },

  /**
   * Lets `ms` pass on the hub's clock, with `rate` events a second. Resolves when healthy webhooks have their events.
   */
  async live({ ms, rate }: { ms: number; rate: number }): Promise<void> {
    const node = living()
    for (const end = now + ms; now < end; ) {
      const underway: Promise<void>[] = []
      for (; underway.length < atOnce && nextAt < end; nextAt += 1000 / rate) {
        now = Math.max(now, Math.round(nextAt))
        const { institutionId, payload } = eventAt(livestreams, busy, events++, now)
        underway.push(node.publish(institutionId, payload))
      }
      await Promise.all(underway)
      if (nextAt >= end) now = end
      if (now - tidiedAt >= tidyEveryMs) {
        await node.tidy()
        tidiedAt = now
      }
      node.deliver()
      await delivered(node)
      if (events - sweptAt >= sweepEvery) {
        await sweep(node)
        sweptAt = events
      }
    }
  },

  /** Returns the present figures of the hub. */
  async look(_: object) {
    const node = living()
    const kept = { messages: 0, bytes: 0 }
    for await (const [key, value] of node.store.range('journal/')) {
      kept.messages++
      kept.bytes += key.length + value.length
    }
    const lengths = node.queues.names().map(node.queues.lengthOf)
    const sum = (of: (length: (typeof lengths)[number]) => number) =>
      lengths.reduce((total, length) => total + of(length), 0)
    const seen = {
      events,
      pushes,
      longestSweep,
      kept,
      heap: process.memoryUsage().heapUsed,
      waiting: sum(({ pending }) => pending),
      dropped: sum(({ dropped }) => dropped),
      deadLetters: sum(({ deadLetters }) => deadLetters),
    }
    longestSweep = 0
    return seen
  },

  async close(_: object): Promise<void> {
    await living().close()
  },
}

async function sweep(node: Hub): Promise<void> {
  const began = performance.now()
  await node.sweep()
  longestSweep = Math.max(longestSweep, performance.now() - began)
}

/** Resolves when only dead webhooks have waiting events. */
async function delivered({ queues }: Hub): Promise<void> {
  while (queues.names().some((name) => !dead.has(name) && queues.lengthOf(name).pending > 0)) await delay(1)
}

function living(): Hub {
  if (!hub) throw new Error('no hub is open')
  return hub
}

function livestreamsOf(feedPath: string) {
  return readFeed(feedPath).livestreams
}

function at<Of>(list: readonly Of[], index: number): Of {
  const found = list[index % list.length]
  if (!found) throw new Error('there are none')
  return found
}

answer(commands)
