import { Type } from '../event/type.ts'
import {
  instant as instantArgument,
  institution,
  limit,
  livestream,
  oneOf,
  queue,
  subscription,
  text,
} from './arguments.ts'
import { aQueue } from './examples.ts'
import { changes, loses, type Of, reads } from './operation.ts'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  recordOf,
  string,
  stringOrNull,
} from './results.ts'

/** The states of a queue. Those of a push subscription are among them. */
export const queueStates = [
  ...(['idle', 'beginning', 'delivering', 'behind', 'retrying'] as const),
  ...(['paused', 'disabled', 'closed', 'no target', 'driver down'] as const),
] as const

const driver = Type.Object({
  state: one('starting', 'running', 'down'),
  ends: integer,
  lastEnd: orNull(Type.Object({ at: instant, reason: string })),
})

/** What waits in a queue, and how it goes with it. */
const standing = {
  state: one(...queueStates),
  pending: integer,
  oldest: instantOrNull,
  deadLetters: integer,
}
const trouble = {
  aside: Type.Integer({ description: 'items that were refused too often, and are tried out of order' }),
  dropped: integer,
  failures: integer,
  nextTry: instantOrNull,
  lastReason: stringOrNull,
}

const shownQueue = Type.Object({
  name: string,
  target: Type.Union([string, Type.Null()], { description: 'null: the target is gone' }),
  contact: stringOrNull,
  ...standing,
  ...trouble,
  driver: Type.Union([driver, Type.Null()], { description: 'null: the driver is a part of the hub' }),
  disabledAt: instantOrNull,
  pausedAt: instantOrNull,
})

export const attempt = Type.Object({
  messageId: string,
  time: instant,
  status: Type.Union([integer, Type.Null()], { description: 'null: no answer, or one without a status' }),
  duration: Type.Number({ description: 'milliseconds' }),
  reason: Type.Union([string, Type.Null()], { description: 'null: the target acknowledged the message' }),
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
  details: recordOf(Type.Unknown()),
  attempts: Type.Array(attempt),
})

const listed = {
  name: string,
  institutionId: string,
  livestream: Type.Object({ id: string, title: stringOrNull }),
  url: string,
  contact: string,
  ...standing,
  createdAt: instant,
}

const shown = Type.Object({
  ...listed,
  ...trouble,
  from: instantOrNull,
  createdBy: string,
  serviceAccount: string,
  ackDeadlineSeconds: integer,
  since: instant,
  paused: orNull(Type.Object({ at: instant, by: Type.Optional(string) })),
  disabled: orNull(Type.Object({ at: instant, by: string, reason: string })),
  attempts: Type.Array(attempt),
})
const listedSubscription = Type.Object(listed)

export type ShownQueue = Of<typeof shownQueue>
export type ShownAttempt = Of<typeof attempt>
export type ShownDeadLetter = Of<typeof deadLetter>
export type ListedSubscription = Of<typeof listedSubscription>
export type ShownSubscription = Of<typeof shown>

/** The commands about webhooks and plugin targets. */
export const queueOperations = {
  'queues.list': reads('what waits for webhooks and plugin targets, and how they answer', {
    args: { state: Type.Optional(oneOf(...queueStates)), limit },
    result: Type.Array(shownQueue),
  }),
  'queues.attempts': reads('the last deliveries of a queue, newest first', {
    args: { name: queue, limit },
    example: { name: aQueue },
    result: Type.Array(attempt),
  }),
  'queues.dead-letters': reads('what was given up, and why', {
    args: { name: queue, limit },
    example: { name: aQueue },
    result: Type.Array(deadLetter),
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
      result: Type.Object({ name: string, replayed: integer }),
    },
  ),

  'subscriptions.list': reads('webhooks of all institutions, oldest first, and how it goes with them', {
    args: {
      institution: Type.Optional(institution),
      livestream: Type.Optional(livestream),
      state: Type.Optional(text('the state of a subscription')),
      limit,
    },
    result: Type.Array(listedSubscription),
  }),
  'subscriptions.show': reads('one of them with its last deliveries, and who paused or disabled it', {
    args: { name: text('the name of a subscription, or its beginning') },
    example: { name: aQueue },
    result: shown,
  }),
  'subscriptions.test': changes(
    'send a marked test message to a webhook now, past what waits; if it is acknowledged, a disabled one is enabled',
    {
      args: { name: subscription },
      example: { name: aQueue },
      result: Type.Object({ name: string, delivered: boolean, delivery: attempt }),
    },
  ),
  'subscriptions.pause': changes('send nothing to a webhook until it is resumed; its events are collected', {
    args: { name: subscription },
    example: { name: aQueue },
    result: Type.Object({ name: string, paused: boolean }),
  }),
  'subscriptions.resume': changes('end a pause, and send what was collected, in its order', {
    args: { name: subscription },
    example: { name: aQueue },
    result: Type.Object({ name: string, resumed: boolean, state: one(...queueStates), pending: integer }),
  }),
  'subscriptions.remove': loses('remove a subscription with all that waits for it and its dead letters', {
    args: { name: subscription },
    example: { name: aQueue },
    console: {
      view: 'webhooks',
      title: 'Remove',
      by: 'name',
      loss: [
        'The subscription of {institutionId} is lost with all that waits for it. Its webhook gets nothing more.',
        '{pending|message} wait.',
        '{deadLetters|dead letter} go with it.',
      ],
    },
    result: Type.Object({ name: string, removed: boolean, pending: integer, deadLetters: integer }),
  }),
}
