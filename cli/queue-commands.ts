import { parseInstant } from '../event/timestamp.ts'
import { type Command, usage } from './command.ts'
import { parseDuration } from './duration.ts'
import { valueAt } from './print.ts'

/** The queues of webhooks and plugin targets. */
export const queueCommands: readonly Command[] = [
  {
    words: 'queues list',
    summary: 'what waits for webhooks and plugin targets, and how they answer',
    asks: 'queues.list',
    print: (result, printer) => printer.list(result, queueColumns, 'No subscriptions and no plugin targets.'),
  },
  {
    words: 'queues attempts',
    summary: 'the last deliveries of a queue, newest first',
    parameters: ['<name>'],
    asks: 'queues.attempts',
    args: (input) => ({ name: input.text('name') }),
    print: (result, printer) => printer.list(result, attemptColumns, 'Nothing was tried yet.'),
  },
  {
    words: 'queues dead-letters',
    summary: 'what was given up, and why; --json shows every attempt',
    parameters: ['<name>'],
    asks: 'queues.dead-letters',
    args: (input) => ({ name: input.text('name') }),
    print: (result, printer) => printer.list(result, deadLetterColumns, 'No dead letters.'),
  },
  {
    words: 'queues replay',
    summary: 'send what was given up once more, all or one message; enables a disabled subscription',
    parameters: ['<name>', '[message-id]'],
    options: [
      {
        flags: '--since <time>',
        summary: 'to a webhook all events since then, delivered or not: ISO 8601, or 90s, 30m, 24h, 7d ago',
      },
    ],
    asks: 'queues.replay',
    args(input) {
      const messageId = input.optional('messageId')
      const since = input.optional('since')
      if (since === undefined) {
        return { name: input.text('name'), ...(messageId !== undefined && { messageId }) }
      }
      if (messageId !== undefined) throw usage('--since is for all events: leave out the message id')
      return { name: input.text('name'), since: timeOf(since) }
    },
    print: (result, printer) =>
      valueAt(result, 'replayed') === 0
        ? printer.sentence('Nothing to send once more. What waits is tried now:', valueAt(result, 'name'))
        : printer.sentence(`Sending ${valueAt(result, 'replayed')} once more, from`, valueAt(result, 'name')),
  },
]

const queueColumns = [
  ['NAME', 'name'],
  ['TARGET', 'target'],
  ['STATE', 'state'],
  ['PENDING', 'pending'],
  ['ASIDE', 'aside'],
  ['DEAD LETTERS', 'deadLetters'],
  ['DROPPED', 'dropped'],
  ['OLDEST', 'oldest'],
  ['NEXT TRY', 'nextTry'],
  ['LAST REASON', 'lastReason'],
] as const

/** How the tries of a queue are listed. */
export const attemptColumns = [
  ['TIME', 'time'],
  ['MESSAGE', 'messageId'],
  ['STATUS', 'status'],
  ['MS', 'duration'],
  ['REASON', 'reason'],
] as const

const deadLetterColumns = [
  ['MESSAGE', 'messageId'],
  ['GIVEN UP', 'givenUpAt'],
  ['TRIES', 'tries'],
  ['REASON', 'reason'],
] as const

/** The moment that is meant, ISO 8601. */
function timeOf(text: string): string {
  const seconds = parseDuration(text)
  const time = seconds === undefined ? parseInstant(text) : Date.now() - seconds * 1000
  if (time === undefined) {
    throw usage(
      `--since must be a time such as 2026-01-31T18:00:00Z, or a duration such as 90s, 30m, 24h or 7d, not "${text}"`,
    )
  }
  return new Date(time).toISOString()
}
