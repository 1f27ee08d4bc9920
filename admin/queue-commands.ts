import type { ShownQueue } from '../delivery/queue-list.ts'
import { parseInstant } from '../event/format.ts'
import { choose } from '../operations/choose.ts'
import type { CommandsOf, Result } from '../operations/operations.ts'
import { refusal, uniqueByPrefix, unknownName } from '../operations/refusal.ts'
import type { Audit } from './audit.ts'

type Awaitable<T> = T | Promise<T>

/** The parts of a node that the commands about work queues use. */
export interface QueueCommandParts {
  queues: {
    list(): Awaitable<readonly ShownQueue[]>
    deadLetters(name: string): Result<'queues.dead-letters'>
    attempts(name: string): Promise<Result<'queues.attempts'>>
    replay(name: string, messageId: string | undefined): Promise<number>
    /** Before it changes anything, calls `first` with the number of messages. */
    replaySince(name: string, since: number, first: (count: number) => Promise<void>): Promise<number>
    isWebhook(name: string): boolean
    /** Why the hub will send nothing from this queue any more, or undefined. */
    whyClosed(name: string): string | undefined
    /** Why the hub sends nothing now: `whyClosed`, or who has paused the queue. */
    whyNotSent(name: string): string | undefined
  }
}

/** The commands about the queues of webhooks and plugin targets (design.md §4, §10). */
export function createQueueCommands({
  queues,
  audit,
}: QueueCommandParts & { audit: Audit }): CommandsOf<'queues'> {
  return {
    'queues.list': async ({ limit, ...wanted }) => choose(await queues.list(), wanted, limit),
    'queues.dead-letters': async ({ name, limit }) =>
      choose(queues.deadLetters(await existing(name)), {}, limit),
    'queues.attempts': async ({ name, limit }) =>
      choose(await queues.attempts(await existing(name)), {}, limit),
    'queues.replay': async (args, who) => {
      const name = await existing(args.name)
      const reason = queues.whyNotSent(name)
      if (reason !== undefined) throw refusal(`nothing is replayed: ${reason}`)
      if (args.since !== undefined) return replaySince(name, args.since, who)
      const { messageId } = args
      const letters = queues.deadLetters(name)
      if (messageId !== undefined && !letters.some((letter) => letter.messageId === messageId)) {
        throw unknownName('dead letter', messageId)
      }
      const replayed = await audit.change(who, 'queues.replay', async (first) => {
        const replayed = messageId === undefined ? letters.length : 1
        await first(name, { messageId: messageId ?? null, replayed })
        return queues.replay(name, messageId)
      })
      return { name, replayed }
    },
  }

  async function replaySince(name: string, since: string, who: string) {
    const time = parseInstant(since)
    if (time === undefined) throw refusal(`since must be a time in ISO 8601, not ${JSON.stringify(since)}`)
    if (!queues.isWebhook(name))
      throw refusal(`${name} is not a webhook: since is for those, which have one livestream`)
    const replayed = await audit.change(who, 'queues.replay', (first) =>
      queues.replaySince(name, time, (replayed) =>
        first(name, { since: new Date(time).toISOString(), replayed }),
      ),
    )
    return { name, replayed }
  }

  /**
   * Finds a queue by its name, or the only webhook queue whose name begins with `typed`. Plugin targets have short
   * names, which must be typed whole.
   */
  async function existing(typed: string): Promise<string> {
    const all = await queues.list()
    if (all.some(({ name }) => name === typed)) return typed
    const ofWebhooks = all.map(({ name }) => name).filter((name) => !name.startsWith('plugins.'))
    return uniqueByPrefix('queue', typed, ofWebhooks)
  }
}
