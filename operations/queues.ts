import {
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  recordOf,
  string,
  stringOrNull,
} from '../event/answer-fields.ts'
import { parseInstant } from '../event/format.ts'
import { attempt } from '../event/outcome-schemas.ts'
import { Type } from '../event/type.ts'
import { instant as instantArgument, limit, oneOf, queue, text } from './arguments.ts'
import { refusal, uniqueByPrefix, unknownName } from './errors.ts'
import { aQueue } from './examples.ts'
import { choose } from './lookups/choose.ts'
import type { NodeParts } from './node-parts.ts'
import { type ChangeRequest, changes, type Of, reads } from './operation.ts'

/** The states of the queue of a push subscription. */
export const subscriptionStates = [
  'idle',
  'beginning',
  'delivering',
  'behind',
  'retrying',
  'paused',
  'disabled',
  'closed',
] as const

/** The states of a queue. */
export const queueStates = [...subscriptionStates, 'no target', 'driver down'] as const

const driver = Type.Object({
  state: one('starting', 'running', 'down'),
  ends: integer,
  lastEnd: orNull(Type.Object({ at: instant, reason: string })),
})

/** What waits in a queue, and how it goes with it. */
export const standing = {
  state: one(...queueStates),
  pending: integer,
  oldest: instantOrNull,
  deadLetters: integer,
}
export const trouble = {
  aside: Type.Integer({ description: 'items that were refused too often, and are tried out of order' }),
  dropped: integer,
  stale: Type.Integer({ description: 'items that were passed over: not worth delivering any more' }),
  failures: integer,
  nextTry: instantOrNull,
  lastReason: stringOrNull,
}

const shownQueue = Type.Object({
  name: string,
  target: orNull(string, 'null: the target is gone'),
  contact: stringOrNull,
  ...standing,
  ...trouble,
  driver: orNull(driver, 'null: the driver is a part of the hub'),
  disabledAt: instantOrNull,
  pausedAt: instantOrNull,
})

const deadLetter = Type.Object({
  messageId: string,
  givenUpAt: instant,
  reason: string,
  tries: integer,
  refusals: integer,
  sequence: integer,
  enqueuedAt: Type.Number({ description: 'milliseconds since the epoch' }),
  acceptedAt: Type.Optional(Type.Number({ description: 'milliseconds since the epoch' })),
  asideUntil: Type.Optional(Type.Number({ description: 'milliseconds since the epoch' })),
  begun: Type.Optional(Type.Number({ description: 'milliseconds since the epoch' })),
  element: Type.Optional(
    Type.Unknown({ description: 'what tells when the event is over: its kind, time and livestreams' }),
  ),
  details: recordOf(Type.Unknown()),
  attempts: Type.Array(attempt),
})

export type ShownQueue = Of<typeof shownQueue>
export type ShownAttempt = Of<typeof attempt>

export const attemptColumns = [
  'time',
  ['MESSAGE', 'messageId'],
  'status',
  ['MS', 'duration'],
  'reason',
] as const

/** The commands about the queues of webhooks and plugin targets (design.md §4, §10). */
export const queueOperations = {
  'queues.list': reads('what waits for webhooks and plugin targets, and how they answer', {
    args: { state: Type.Optional(oneOf(...queueStates)), limit },
    hubctl: {
      columns: [
        'name',
        'target',
        'state',
        'pending',
        'aside',
        'deadLetters',
        'dropped',
        'stale',
        'oldest',
        'nextTry',
        'lastReason',
        'driver.ends',
        'contact',
      ],
    },
    result: Type.Array(shownQueue),
    run: async ({ deliveries }, { limit, ...wanted }) => choose(await deliveries.list(), wanted, limit),
  }),
  'queues.attempts': reads('the last deliveries of a queue, newest first', {
    args: { name: queue, limit },
    example: { name: aQueue },
    hubctl: { about: 'At most 50.', columns: attemptColumns, nothing: 'Nothing was tried yet.' },
    result: Type.Array(attempt),
    run: async ({ deliveries }, { name, limit }) =>
      (await deliveries.attempts(await existing(deliveries, name))).slice(0, limit),
  }),
  'queues.dead-letters': reads('what was given up, and why', {
    args: { name: queue, limit },
    example: { name: aQueue },
    hubctl: { columns: [['MESSAGE', 'messageId'], 'givenUpAt', 'tries', 'reason'] },
    result: Type.Array(deadLetter),
    run: async ({ deliveries }, { name, limit }) =>
      deliveries.deadLetters(await existing(deliveries, name)).slice(0, limit),
  }),
  'queues.replay': changes(
    'send once more what was given up, all or one message, or all events of a webhook since a time; enables a disabled subscription',
    {
      args: {
        name: queue,
        messageId: Type.Optional(text('the id of a message that was given up')),
        since: Type.Optional(instantArgument),
      },
      example: { name: aQueue },
      hubctl: {
        about: 'What `--since` [does](operators.md#webhooks-and-plugin-targets).',
        typed: {
          messageId: '[message-id]',
          since: [
            '--since <time>',
            'all events of the webhook since then, delivered or not, also those from before it was subscribed',
          ],
        },
      },
      check: ({ messageId, since }) =>
        since !== undefined && messageId !== undefined
          ? 'since is for all events: leave out the message id'
          : undefined,
      result: Type.Object({ name: string, replayed: integer }),
      async run({ deliveries }, { name: typed, messageId, since }, { note }) {
        const name = await existing(deliveries, typed)
        const reason = deliveries.whyNotSent(name)
        if (reason !== undefined) throw refusal(`nothing is replayed: ${reason}`)
        if (since !== undefined) return replaySince(deliveries, name, since, note)
        const letters = deliveries.deadLetters(name)
        if (messageId !== undefined && !letters.some((letter) => letter.messageId === messageId)) {
          throw unknownName('dead letter', messageId)
        }
        await note(name, {
          messageId: messageId ?? null,
          replayed: messageId === undefined ? letters.length : 1,
        })
        return { name, replayed: await deliveries.replay(name, messageId) }
      },
    },
  ),
}

type Deliveries = NodeParts['deliveries']

async function replaySince(deliveries: Deliveries, name: string, since: string, note: ChangeRequest['note']) {
  const time = parseInstant(since)
  if (time === undefined) throw refusal(`since must be a time in ISO 8601, not ${JSON.stringify(since)}`)
  if (!deliveries.isWebhook(name))
    throw refusal(`${name} is not a webhook: since is for those, which have one livestream`)
  const replayed = await deliveries.replaySince(name, time, (replayed) =>
    note(name, { since: new Date(time).toISOString(), replayed }),
  )
  return { name, replayed }
}

/**
 * Finds a queue by its name, or the only webhook queue whose name begins with `typed`. Plugin targets have short
 * names, which must be typed whole.
 */
async function existing(deliveries: Deliveries, typed: string): Promise<string> {
  const all = await deliveries.list()
  if (all.some(({ name }) => name === typed)) return typed
  const ofWebhooks = all.map(({ name }) => name).filter((name) => !name.startsWith('plugins.'))
  return uniqueByPrefix('queue', typed, ofWebhooks)
}
