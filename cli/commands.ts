import { readFile } from 'node:fs/promises'
import { checkClass, checkInstitution } from '../acl/permissions.ts'
import { checkTopicFilter, checkTopicName } from '../event/topic.ts'
import type { Checked } from '../operations/events.ts'
import { operationNames, operations, type Result } from '../operations/operations.ts'
import { type Command, filtersOf, usage } from './command.ts'
import { credentialCommands } from './credential-commands.ts'
import { eventCommands, warningColumns } from './event-commands.ts'
import { feedDiffCommand } from './feed-diff.ts'
import { httpsCommands } from './https-commands.ts'
import { importCommand } from './import-command.ts'
import type { Column, Printer } from './print.ts'
import { queueCommands } from './queue-commands.ts'
import { statusCommand } from './status.ts'
import { subscriptionCommands } from './subscription-commands.ts'

/** All commands, in the order of the help (design.md §4). */
export const commands: readonly Command[] = [
  statusCommand,
  {
    words: 'trend',
    operation: 'trend',
    print: (result, printer) => printer.list(result.samples, trendColumns, 'The node has just been started.'),
  },
  ...credentialCommands,
  ...httpsCommands.filter(({ words }) => words.startsWith('users ')),
  {
    words: 'feed status',
    operation: 'feed.status',
    print: (result, printer) => printer.properties(result),
  },
  {
    words: 'feed refresh',
    options: [
      {
        flags: '--force',
        summary: 'accept it even if it shrank, grew, or lacks a canary or the institution of a publisher',
      },
    ],
    operation: 'feed.refresh',
    args: (input) => ({ force: input.flag('force') }),
    print: (result, printer) => printer.properties(result),
    succeeded: (result) => result.ok !== false,
  },
  feedDiffCommand,
  {
    words: 'feed lookup',
    parameters: ['[id]'],
    operation: 'feed.lookup',
    args(input) {
      const id = input.optional('id')
      return id === undefined ? {} : { id }
    },
    print: (result, printer) =>
      result.length > 1
        ? printer.list(result, livestreamColumns, 'No livestream.')
        : printer.properties(result[0]),
  },
  {
    words: 'clients list',
    operation: 'clients.list',
    ...filtersOf('clients.list'),
    print: (result, printer) => printer.list(result, clientColumns, 'No clients.'),
  },
  {
    words: 'clients count',
    operation: 'clients.count',
    ...filtersOf('clients.count'),
    print: (result, printer) => printer.list(result, subscriberColumns, 'No livestreams.'),
  },
  {
    words: 'clients disconnect',
    parameters: ['<client-id>'],
    operation: 'clients.disconnect',
    args: (input) => ({ clientId: input.text('clientId') }),
    print: (result, printer) => printer.sentence('Disconnected', result.clientId),
  },
  {
    words: 'sessions list',
    operation: 'sessions.list',
    ...filtersOf('sessions.list'),
    print: (result, printer) => printer.list(result, sessionColumns, 'No sessions.'),
  },
  {
    words: 'sessions show',
    parameters: ['<client-id>'],
    operation: 'sessions.show',
    args: (input) => ({ clientId: input.text('clientId') }),
    print: (result, printer) => printer.list([result], sessionColumns, ''),
  },
  {
    words: 'sessions drop',
    parameters: ['<client-id>'],
    operation: 'sessions.drop',
    args: (input) => ({ clientId: input.text('clientId') }),
    print: (result, printer) => printer.sentence('Dropped the session of', result.clientId),
  },
  {
    words: 'retained list',
    parameters: ['[filter]'],
    operation: 'retained.list',
    options: filtersOf('retained.list', ['filter']).options,
    args(input) {
      const filter = input.optional('filter')
      const malformed = filter === undefined ? undefined : checkTopicFilter(filter)
      if (malformed !== undefined) throw usage(`"${filter}" is not a topic filter: ${malformed}`)
      return {
        ...filtersOf('retained.list', ['filter']).args(input),
        ...(filter !== undefined && { filter }),
      }
    },
    print: (result, printer) => printer.list(result, retainedColumns, 'No retained messages.'),
  },
  {
    words: 'retained clear',
    parameters: ['<topic>'],
    operation: 'retained.clear',
    args(input) {
      const topic = input.text('topic')
      const malformed = checkTopicName(topic)
      if (malformed !== undefined) throw usage(`"${topic}" is not a topic: ${malformed}`)
      return { topic }
    },
    print: (result, printer) => printer.sentence('Cleared', result.topic),
  },
  {
    words: 'check',
    parameters: ['<file>'],
    options: [
      { flags: '--institution <urn>', summary: 'institution the event is published for', required: true },
      { flags: '--class <class>', summary: 'as if published to inbox/…/<class>' },
    ],
    operation: 'check',
    async args(input) {
      const institution = input.text('institution')
      const cls = input.optional('class')
      const wrong = checkInstitution(institution) ?? (cls === undefined ? undefined : checkClass(cls))
      if (wrong !== undefined) throw usage(wrong)
      const content = await readEvent(input.text('file'))
      return {
        institution,
        ...(cls === undefined ? {} : { class: cls }),
        payload: content.toString('base64'),
      }
    },
    print: printCheck,
    succeeded: (result) => result.outcome === 'published',
  },
  ...queueCommands,
  ...subscriptionCommands,
  ...eventCommands,
  ...httpsCommands.filter(({ words }) => !words.startsWith('users ')),
  importCommand,
  {
    words: 'store accept',
    operation: 'store.accept',
    print: (result, printer) =>
      printer.sentence('Accepted the new store. The damaged one stays at', result.movedTo),
  },
  {
    words: 'audit',
    operation: 'audit',
    options: filtersOf('audit').options,
    args(input) {
      const args = filtersOf('audit').args(input)
      const { action } = args
      if (action !== undefined && !actions.some((known) => known === action)) {
        throw usage(`action must be one of ${actions.join(', ')}, not "${action}"`)
      }
      return args
    },
    print: (result, printer) => printer.list(result, auditColumnsOf(result), 'No changes.'),
  },
  {
    words: 'config',
    operation: 'config',
    print: (result, printer) => printer.properties(result),
  },
]

const trendColumns: readonly Column[] = [
  ['UNTIL', 'at'],
  ['PUBLISHED', 'events.published'],
  ['BLOCKED', 'events.blocked'],
  ['INVALID', 'events.invalid'],
  ['FAILED', 'events.failed'],
  ['DELIVERIES', 'deliveries'],
  ['CONNECTIONS', 'connections'],
  ['P50 MS', 'p50'],
  ['P99 MS', 'p99'],
  ['OVER BUDGET', 'exceeded'],
]

const livestreamColumns = [
  ['ID', 'id'],
  ['TITLE', 'title'],
  ['EXTERNAL ID', 'externalId'],
  ['PUBLISHER', 'publisher.id'],
  ['INSTITUTION', 'institution.id'],
] as const

const clientColumns = [
  ['CLIENT ID', 'clientId'],
  ['NODE', 'node'],
  ['USERNAME', 'username'],
  ['ADDRESS', 'address'],
  ['CONNECTED', 'connectedAt'],
  ['SUBSCRIPTIONS', 'subscriptions'],
] as const

const subscriberColumns = [
  ['LIVESTREAM', 'title'],
  ['ID', 'livestreamId'],
  ['SUBSCRIBERS', 'subscribers'],
  ['OF ALL LIVESTREAMS', 'ofAll'],
] as const

const sessionColumns = [
  ['CLIENT ID', 'clientId'],
  ['USERNAME', 'username'],
  ['CONNECTED', 'connected'],
  ['NODE', 'node'],
  ['SUBSCRIPTIONS', 'subscriptions'],
  ['QUEUED', 'queued'],
  ['EXPIRES', 'expiresAt'],
] as const

const retainedColumns = [
  ['TOPIC', 'topic'],
  ['EVENT TIME', 'eventTime'],
  ['EXPIRES', 'expires'],
  ['BYTES', 'bytes'],
] as const

/** The actions in the audit log: every command that changes something, and backups. */
const actions = [
  ...operationNames.filter((name) => operations[name].effect !== 'none'),
  ...['export', 'import'],
]

const auditColumns = [
  ['AT', 'at'],
  ['WHO', 'who'],
  ['ACTION', 'action'],
  ['TARGET', 'target'],
  ['DETAIL', 'detail'],
] as const

/** Entries name a node if nodes share the store. */
function auditColumnsOf(entries: Result<'audit'>): readonly Column[] {
  const saysNode = entries.some(({ node }) => node !== undefined)
  return saysNode ? [...auditColumns, ['NODE', 'node']] : auditColumns
}

const errorColumns = [
  ['PATH', 'path'],
  ['CODE', 'errorCode'],
  ['MESSAGE', 'message'],
] as const

function printCheck(
  { outcome, event, eventTime, services, errors, warnings }: Checked,
  printer: Printer,
): string {
  const summary = printer.properties({ outcome, event, eventTime, services })
  return [
    summary,
    printer.list(errors, errorColumns, 'No errors.'),
    ...(warnings ? [printer.list(warnings, warningColumns, '')] : []),
  ].join('\n\n')
}

async function readEvent(path: string): Promise<Buffer> {
  if (path !== '-') {
    return readFile(path).catch((error: Error) => {
      throw usage(`cannot read ${path}: ${error.message}`)
    })
  }
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}
