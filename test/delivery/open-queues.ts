import { workLimits } from '../../delivery/queue/limits.ts'
import type { DeadLetter, EarlierMessage, WorkItem } from '../../delivery/queue/work-item.ts'
import { createWorkQueues } from '../../delivery/queue/work-queues.ts'
import { distances } from '../../delivery/worth/element.ts'
import type { Message } from '../../event/message.ts'
import type { Attempt } from '../../event/outcome-schemas.ts'
import { appendChanges, positionIn } from '../../journal/entry.ts'
import { openJournal } from '../../journal/journal.ts'
import { type CommitPart, commitTogether } from '../../store/commit-together.ts'
import { createOnlyNode } from '../../store/nodes/nodes.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createRepetitions } from '../../validator/repetitions.ts'
import { createMemoryStore } from './memory-store.ts'

export type OpenQueues = Awaited<ReturnType<typeof openQueues>>

/** The part of the commit that stores the planned work of an event. */
export interface Planned extends CommitPart {
  id: string
}

export const hour = 3_600_000

/** Work queues on a journal and a store in memory, with a clock that the test sets. */
export async function openQueues(
  options: {
    memory?: ReturnType<typeof createMemoryStore>
    now?: number
    perQueue?: number
    steadyClock?: () => number
    /** If set: the node is one of several nodes, with this slot. */
    slot?: number
    /** Queues that get a message together get it alike, as the webhooks of one livestream do. */
    alike?: boolean
  } = {},
) {
  const { memory = createMemoryStore(), perQueue = 1_000, slot, alike = false } = options
  const time = { now: options.now ?? Date.parse('2026-06-01T12:00:00Z') }
  const journal = await openJournal(memory.store)
  const metrics = createMetrics()
  const queues = await createWorkQueues({
    store: memory.store,
    journal,
    nodes: {
      ...createOnlyNode('test'),
      ...(slot !== undefined && { isShared: true, slot: () => slot }),
    },
    isOwn: () => true,
    clock: () => time.now,
    steadyClock: options.steadyClock ?? (() => time.now),
    limits: { ...workLimits, perQueue },
    metrics,
  })

  const repetitions = await createRepetitions({ store: memory.store, clock: () => time.now })

  /** Plans one work item per queue. `changes` is everything that the hub stores of the event. */
  function plan(
    messageId: string,
    names: readonly string[],
    fingerprint = messageId,
    livestreams?: readonly string[],
  ): Planned {
    const element = livestreams && {
      event: 'de.org.hub.v1.radio.track.playing',
      time: time.now,
      livestreams: distances(livestreams),
    }
    const { id, once, marks } = repetitions(fingerprint, () => messageId)
    const planned = queues.plan({
      messageId: id,
      once,
      groups: (alike ? [names] : names.map((queue) => [queue])).map((together) => ({
        scope: together.join(),
        content: { nth: 0 },
        queues: together,
        details: {},
        element,
      })),
    })
    const appended = planned.length > 0 ? appendChanges([messageOf(id)], time.now) : []
    const part = marks()
    return { ...part, id, changes: [...planned, ...appended, ...part.changes] }
  }

  return {
    queues,
    journal,
    memory,
    metrics,
    time,
    plan,

    /** Appends one message to each of these queues. False: the store refused the commit. */
    async append(messageId: string, ...names: string[]): Promise<boolean> {
      const stored = commitTogether(memory.store, [() => plan(messageId, names)])
      return stored.then(
        () => true,
        () => false,
      )
    },

    /** The same for one queue, with the livestreams of the event. */
    async appendFor(messageId: string, queue: string, livestreams: readonly string[]): Promise<void> {
      await commitTogether(memory.store, [() => plan(messageId, [queue], messageId, livestreams)])
    },

    /** Removes the journal entries that no work item refers to. */
    trim(): void {
      for (const key of [...memory.keys('journal/'), ...memory.keys('latest/')]) {
        if (!journal.neededByQueues.has(positionIn(key))) memory.entries.delete(key)
      }
    },

    head(name: string): WorkItem {
      const { head } = queues.waiting(name)
      if (!head) throw new Error(`${name} is empty`)
      return head
    },

    letter(name: string): DeadLetter {
      const [letter] = queues.deadLetters(name)
      if (!letter) throw new Error(`${name} has no dead letters`)
      return letter
    },

    /** Opens the queues again, as a hub would find them if it started now. */
    reopen: () => openQueues({ memory: memory.crashed(), now: time.now, perQueue, alike }),

    /** The visible state of a queue, to compare with the state after a restart. */
    view: (name: string) => ({
      ...queues.lengthOf(name),
      dropped: 0, // The hub counts anew after a restart.
      letters: queues.deadLetters(name),
      // Of the items that were set aside, `waiting` has only the next one. When they were seen is in no store.
      ...Object.fromEntries(
        Object.entries(queues.waiting(name)).flatMap(([place, one]) => {
          const { seen: _here, ...item } = one ?? {}
          return one ? [[place, item]] : []
        }),
      ),
    }),

    /** Acknowledges all items of a queue. Returns their message ids, or `wrong payload` where the payload differs. */
    async drain(name: string): Promise<string[]> {
      const drained: string[] = []
      for (;;) {
        const { head } = queues.waiting(name)
        // Only items set aside are left: move the clock on.
        if (!head) time.now += hour
        const item = head ?? queues.waiting(name).due
        if (!item) return drained
        const payload = String(await queues.payload(name, item))
        drained.push(payload === payloadOf(item.messageId) ? item.messageId : 'wrong payload')
        await queues.acknowledge(name, item)
      }
    },
  }
}

/** The messages at these positions, as the queues take them in `begin` and `repeat`. */
export function messagesAt(...positions: number[]): EarlierMessage[] {
  const describe = ({ payload }: { payload: Buffer }) => ({
    messageId: String(payload).split(' ').at(-1) ?? '',
    details: {},
  })
  return positions.map((position) => ({ position, at: 0, describe }))
}

function messageOf(id: string): Message {
  const payload = Buffer.from(payloadOf(id))
  return { topic: 'radio/1/track', stream: '1', payload, qos: 1, queue: { keep: 'latest' } }
}

function payloadOf(id: string): string {
  return `payload of ${id}`
}

export function attempt(messageId: string, reason: string | null = 'answered 500'): Attempt {
  return { messageId, time: '2026-06-01T12:00:00.000Z', status: 500, duration: 3, reason }
}
