import { isLivestreamName, readSelection } from '../delivery/webhook/selection.ts'
import type { ShownSubscription } from '../operations/subscriptions.ts'
import { type Command, type Input, usage } from './command.ts'
import type { Printer } from './print.ts'
import { attemptColumns } from './queue-commands.ts'

/** The commands about push subscriptions of all institutions. */
export const subscriptionCommands: readonly Command[] = [
  {
    words: 'subscriptions list',
    options: [
      { flags: '--institution <urn>', summary: 'only those of this institution' },
      { flags: '--livestream <id>', summary: 'only those of this livestream: its id, external id or title' },
      {
        flags: '--state <state>',
        summary:
          'only those that are idle, beginning, delivering, behind, retrying, paused, disabled or closed',
      },
      { flags: '--limit <number>', summary: 'at most so many' },
    ],
    operation: 'subscriptions.list',
    args(input) {
      const asked = {
        institution: input.optional('institution'),
        livestream: input.optional('livestream'),
        state: input.optional('state'),
        limit: numberOrText(input.optional('limit')),
      }
      const { livestream } = asked
      const isNamed = livestream !== undefined && isLivestreamName(livestream)
      const judged = readSelection(isNamed ? { ...asked, livestream: undefined } : asked)
      if ('error' in judged) throw usage(judged.error)
      return asked
    },
    print: (result, printer) => printer.list(result, subscriptionColumns, 'No subscriptions.'),
  },
  {
    words: 'subscriptions show',
    parameters: ['<name>'],
    operation: 'subscriptions.show',
    args: nameArgument,
    print: printSubscription,
  },
  {
    words: 'subscriptions test',
    parameters: ['<name>'],
    operation: 'subscriptions.test',
    args: nameArgument,
    print: (result, printer) => printer.list([result.delivery], attemptColumns, ''),
    succeeded: (result) => result.delivered === true,
  },
  {
    words: 'subscriptions pause',
    parameters: ['<name>'],
    operation: 'subscriptions.pause',
    args: nameArgument,
    print: (result, printer) => printer.sentence('Paused', result.name),
  },
  {
    words: 'subscriptions resume',
    parameters: ['<name>'],
    operation: 'subscriptions.resume',
    args: nameArgument,
    print: (result, printer) =>
      [
        printer.sentence('Resumed', result.name),
        printer.sentence('Messages that wait:', result.pending),
      ].join(' '),
    warning: (result) =>
      result.state === 'disabled'
        ? 'nothing is sent: its webhook answered 410 and it is disabled; a replay or an acknowledged test message enables it'
        : undefined,
  },
  {
    words: 'subscriptions remove',
    parameters: ['<name>'],
    operation: 'subscriptions.remove',
    args: nameArgument,
    print(result, printer) {
      const lost = `${result.pending} messages that waited, ${result.deadLetters} dead letters`
      return `${printer.sentence('Removed', result.name)} ${printer.sentence('Lost with it:', lost)}`
    },
  },
]

const subscriptionColumns = [
  ['NAME', 'name'],
  ['INSTITUTION', 'institutionId'],
  ['LIVESTREAM', 'livestream.id'],
  ['TITLE', 'livestream.title'],
  ['URL', 'url'],
  ['CONTACT', 'contact'],
  ['STATE', 'state'],
  ['PENDING', 'pending'],
  ['OLDEST', 'oldest'],
  ['DEAD LETTERS', 'deadLetters'],
  ['CREATED', 'createdAt'],
] as const

function nameArgument(input: Input): Record<string, unknown> {
  return { name: input.text('name') }
}

/** Converts digits to a number. The error message quotes any other text as it was typed. */
function numberOrText(typed: string | undefined): number | string | undefined {
  return typed !== undefined && /^[0-9]{1,9}$/.test(typed) ? Number(typed) : typed
}

function printSubscription({ attempts, ...subscription }: ShownSubscription, printer: Printer): string {
  return `${printer.properties(subscription)}\n\n${printer.list(attempts, attemptColumns, 'Nothing was tried yet.')}`
}
