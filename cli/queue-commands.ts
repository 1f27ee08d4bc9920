import { type Command, filtersOf, usage } from './command.ts'
import { instantForms, passedInstantOf } from './time/instant.ts'

/** The commands about the queues of webhooks and plugin targets. */
export const queueCommands: readonly Command[] = [
  {
    words: 'queues list',
    operation: 'queues.list',
    ...filtersOf('queues.list'),
    print: (result, printer) => printer.list(result, queueColumns, 'No queues.'),
  },
  {
    words: 'queues attempts',
    parameters: ['<name>'],
    operation: 'queues.attempts',
    options: filtersOf('queues.attempts', ['name']).options,
    args: (input) => ({
      name: input.text('name'),
      ...filtersOf('queues.attempts', ['name']).args(input),
    }),
    print: (result, printer) => printer.list(result, attemptColumns, 'Nothing was tried yet.'),
  },
  {
    words: 'queues dead-letters',
    summary: 'what was given up, and why; --json shows every attempt',
    parameters: ['<name>'],
    operation: 'queues.dead-letters',
    options: filtersOf('queues.dead-letters', ['name']).options,
    args: (input) => ({
      name: input.text('name'),
      ...filtersOf('queues.dead-letters', ['name']).args(input),
    }),
    print: (result, printer) => printer.list(result, deadLetterColumns, 'No dead letters.'),
  },
  {
    words: 'queues replay',
    summary:
      'send once more what was given up, all or one message, or with --since all events of a webhook from then on; enables a disabled subscription',
    parameters: ['<name>', '[message-id]'],
    options: [
      {
        flags: '--since <time>',
        summary: `all events of the webhook since then, delivered or not, also those from before it was subscribed: ${instantForms}`,
      },
    ],
    operation: 'queues.replay',
    args(input) {
      const messageId = input.optional('messageId')
      const since = input.optional('since')
      if (since === undefined) {
        return { name: input.text('name'), ...(messageId !== undefined && { messageId }) }
      }
      if (messageId !== undefined) throw usage('--since is for all events: leave out the message id')
      return { name: input.text('name'), since: passedInstantOf('--since', since) }
    },
    print: (result, printer) =>
      result.replayed === 0
        ? printer.sentence('Nothing to send once more. What waits is tried now:', result.name)
        : printer.sentence(`Sending ${result.replayed} once more, from`, result.name),
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
  ['DRIVER ENDS', 'driver.ends'],
  ['CONTACT', 'contact'],
] as const

/** The columns for the attempts of a queue. */
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
