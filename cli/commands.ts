import { readFile } from 'node:fs/promises'
import { checkClass, checkCredentialRequest, checkInstitution, maxRevokeAfterMs } from '../acl/permissions.ts'
import { checkTopicFilter, checkTopicName } from '../event/topic.ts'
import { parseDuration } from './duration.ts'
import { type Printer, valueAt } from './print.ts'

/** One command of `hubctl`: how it is written, what it asks of the node, how the answer reads. */
export interface Command {
  /** As it is typed: `credentials add`. */
  words: string
  summary: string
  /** Arguments in commander's notation: `<username>`, `[filter]`. */
  parameters?: readonly string[]
  options?: readonly CommandOption[]
  /** Name of the admin command that does it. */
  asks: string
  /** What is sent. Judges everything that can be judged without the node: throws a `usage` error. */
  args?(input: Input): Awaitable<Record<string, unknown>>
  /** The answer for people. */
  print(result: unknown, printer: Printer): string
  /** The answer for `--json`, where it is not the whole result. */
  json?(result: unknown): unknown
  /** Something about a success that needs attention. */
  warning?(result: unknown): string | undefined
  /** Whether the answer means success; otherwise the exit code is 1. */
  succeeded?(result: unknown): boolean
}

/** An option in commander's notation; `many` may be given several times. */
export interface CommandOption {
  flags: string
  summary: string
  required?: boolean
  many?: boolean
}

/** What was typed, by name in camel case. */
export interface Input {
  text(name: string): string
  optional(name: string): string | undefined
  texts(name: string): string[]
  flag(name: string): boolean
}

type Awaitable<T> = T | Promise<T>

/** Wrong usage: `hubctl` says so and exits with 2 (design.md §4). */
export function usage(message: string): Error {
  const error = new Error(message)
  error.name = usageName
  return error
}

/** Whether somebody typed something wrong, as opposed to something that went wrong. */
export function isUsage(error: unknown): error is Error {
  return error instanceof Error && error.name === usageName
}

const usageName = 'Usage'

const institutionOption = (many: boolean): CommandOption => ({
  flags: '--institution <urn>',
  summary: many
    ? 'institution it may publish for (repeat for several)'
    : 'institution the event is published for',
  required: !many,
  many,
})

/** All commands, in the order of the help (design.md §4). */
export const commands: readonly Command[] = [
  {
    words: 'status',
    summary: 'what the node does at the moment',
    asks: 'status',
    print: (result, printer) => printer.properties(result),
  },
  {
    words: 'credentials add',
    summary: 'make a credential; its password is shown once',
    options: [
      { flags: '--role <role>', summary: 'publisher or subscriber', required: true },
      { flags: '--label <label>', summary: 'part of the username: a-z, 0-9 and "-"', required: true },
      institutionOption(true),
      {
        flags: '--class <class>',
        summary: 'limit a publisher to track, control or data (repeat)',
        many: true,
      },
      {
        flags: '--allow <filter>',
        summary: 'topics a subscriber may read, within radio/# (repeat)',
        many: true,
      },
    ],
    asks: 'credentials.add',
    args(input) {
      const request = {
        role: input.text('role'),
        label: input.text('label'),
        institutions: input.texts('institution'),
        classes: input.texts('class'),
        filters: input.texts('allow'),
      }
      const judged = checkCredentialRequest(request)
      if ('error' in judged) throw usage(judged.error)
      return request
    },
    print: printIssued,
    json: withoutWarning,
    warning: warningOf,
  },
  {
    words: 'credentials list',
    summary: 'all credentials',
    asks: 'credentials.list',
    print: (result, printer) => printer.list(result, credentialColumns, 'No credentials.'),
  },
  {
    words: 'credentials show',
    summary: 'one credential',
    parameters: ['<username>'],
    asks: 'credentials.show',
    args: (input) => ({ username: input.text('username') }),
    print: (result, printer) => printer.properties(result),
  },
  {
    words: 'credentials rotate',
    summary: 'make a credential with the same permissions; the old one stays until it is revoked',
    parameters: ['<username>'],
    options: [
      { flags: '--revoke-after <duration>', summary: 'revoke the old one after 90s, 30m, 24h, 7d …' },
    ],
    asks: 'credentials.rotate',
    args(input) {
      const username = input.text('username')
      const given = input.optional('revokeAfter')
      if (given === undefined) return { username }
      const revokeAfter = parseDuration(given)
      if (revokeAfter === undefined || revokeAfter * 1000 > maxRevokeAfterMs) {
        throw usage(
          `--revoke-after must be a duration such as 90s, 30m, 24h or 7d, at most 3650d, not "${given}"`,
        )
      }
      return { username, revokeAfter }
    },
    print: printIssued,
    json: withoutWarning,
    warning: warningOf,
  },
  {
    words: 'credentials revoke',
    summary: 'end a credential and disconnect everybody who uses it',
    parameters: ['<username>'],
    asks: 'credentials.revoke',
    args: (input) => ({ username: input.text('username') }),
    print: (result, printer) => printer.sentence('Revoked', valueAt(result, 'username')),
  },
  {
    words: 'feed status',
    summary: 'the livestream feed in use',
    asks: 'feed.status',
    print: (result, printer) => printer.properties(result),
  },
  {
    words: 'feed refresh',
    summary: 'read the livestream feed now',
    options: [{ flags: '--force', summary: 'accept it even if it shrank by more than 20 %' }],
    asks: 'feed.refresh',
    args: (input) => ({ force: input.flag('force') }),
    print: (result, printer) => printer.properties(result),
    succeeded: (result) => valueAt(result, 'ok') !== false,
  },
  {
    words: 'feed lookup',
    summary: 'livestreams by their id, external id or publisher',
    parameters: ['<id>'],
    asks: 'feed.lookup',
    args: (input) => ({ id: input.text('id') }),
    print: (result, printer) =>
      Array.isArray(result) && result.length > 1
        ? printer.list(result, livestreamColumns, 'No livestream.')
        : printer.properties(Array.isArray(result) ? result[0] : result),
  },
  {
    words: 'clients list',
    summary: 'who is connected',
    asks: 'clients.list',
    print: (result, printer) => printer.list(result, clientColumns, 'Nobody is connected.'),
  },
  {
    words: 'clients disconnect',
    summary: 'close a connection; the client may connect again',
    parameters: ['<client-id>'],
    asks: 'clients.disconnect',
    args: (input) => ({ clientId: input.text('clientId') }),
    print: (result, printer) => printer.sentence('Disconnected', valueAt(result, 'clientId')),
  },
  {
    words: 'sessions list',
    summary: 'sessions, connected or waiting for their client',
    asks: 'sessions.list',
    print: (result, printer) => printer.list(result, sessionColumns, 'No sessions.'),
  },
  {
    words: 'sessions drop',
    summary: 'end a session with everything queued for it, and free its client id',
    parameters: ['<client-id>'],
    asks: 'sessions.drop',
    args: (input) => ({ clientId: input.text('clientId') }),
    print: (result, printer) => printer.sentence('Dropped the session of', valueAt(result, 'clientId')),
  },
  {
    words: 'retained list',
    summary: 'retained messages',
    parameters: ['[filter]'],
    asks: 'retained.list',
    args(input) {
      const filter = input.optional('filter')
      const malformed = filter === undefined ? undefined : checkTopicFilter(filter)
      if (malformed !== undefined) throw usage(`"${filter}" is not a topic filter: ${malformed}`)
      return filter === undefined ? {} : { filter }
    },
    print: (result, printer) => printer.list(result, retainedColumns, 'Nothing is retained.'),
  },
  {
    words: 'retained clear',
    summary: 'forget what is retained on a topic',
    parameters: ['<topic>'],
    asks: 'retained.clear',
    args(input) {
      const topic = input.text('topic')
      const malformed = checkTopicName(topic)
      if (malformed !== undefined) throw usage(`"${topic}" is not a topic: ${malformed}`)
      return { topic }
    },
    print: (result, printer) => printer.sentence('Cleared', valueAt(result, 'topic')),
  },
  {
    words: 'check',
    summary: 'dry run: what would become of an event, and why',
    parameters: ['<file>'],
    options: [
      institutionOption(false),
      { flags: '--class <class>', summary: 'as if published to inbox/…/<class>' },
    ],
    asks: 'check',
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
    succeeded: (result) => valueAt(result, 'outcome') === 'published',
  },
  {
    words: 'audit',
    summary: 'who changed what',
    asks: 'audit',
    print: (result, printer) => printer.list(result, auditColumns, 'Nothing was changed yet.'),
  },
  {
    words: 'config',
    summary: 'the configuration in effect, secrets masked',
    asks: 'config',
    print: (result, printer) => printer.properties(result),
  },
]

const credentialColumns = [
  ['USERNAME', 'username'],
  ['ROLE', 'role'],
  ['INSTITUTIONS', 'institutions'],
  ['CLASSES', 'classes'],
  ['ALLOWED', 'filters'],
  ['CREATED', 'createdAt'],
  ['REVOKED AT', 'revokeAt'],
] as const

const livestreamColumns = [
  ['ID', 'id'],
  ['TITLE', 'title'],
  ['EXTERNAL ID', 'externalId'],
  ['PUBLISHER', 'publisher.id'],
  ['INSTITUTION', 'institution.id'],
] as const

const clientColumns = [
  ['CLIENT ID', 'clientId'],
  ['USERNAME', 'username'],
  ['ADDRESS', 'address'],
  ['CONNECTED', 'connectedAt'],
  ['SUBSCRIPTIONS', 'subscriptions'],
] as const

const sessionColumns = [
  ['CLIENT ID', 'clientId'],
  ['USERNAME', 'username'],
  ['CONNECTED', 'connected'],
  ['SUBSCRIPTIONS', 'subscriptions'],
  ['QUEUED', 'queued'],
  ['EXPIRES', 'expiresAt'],
] as const

const retainedColumns = [
  ['TOPIC', 'topic'],
  ['NAME', 'slot'],
  ['EVENT TIME', 'time'],
  ['EXPIRES', 'expires'],
  ['BYTES', 'bytes'],
] as const

const auditColumns = [
  ['AT', 'at'],
  ['WHO', 'who'],
  ['ACTION', 'action'],
  ['TARGET', 'target'],
  ['DETAIL', 'detail'],
] as const

const errorColumns = [
  ['PATH', 'path'],
  ['CODE', 'errorCode'],
  ['MESSAGE', 'message'],
] as const

function printIssued(result: unknown, printer: Printer): string {
  return `${printer.properties(withoutWarning(result))}\n\nThe password is shown only now: store it.`
}

function printCheck(result: unknown, printer: Printer): string {
  const errors = valueAt(result, 'errors')
  const summary = printer.properties({
    outcome: valueAt(result, 'outcome'),
    event: valueAt(result, 'event'),
    eventTime: valueAt(result, 'eventTime'),
    services: valueAt(result, 'services'),
  })
  return `${summary}\n\n${printer.list(errors, errorColumns, 'No errors.')}`
}

function withoutWarning(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result
  return Object.fromEntries(Object.entries(result).filter(([name]) => name !== 'warning'))
}

function warningOf(result: unknown): string | undefined {
  const warning = valueAt(result, 'warning')
  return typeof warning === 'string' ? warning : undefined
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
