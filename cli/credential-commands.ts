import { checkCredentialRequest, maxRevokeAfterMs } from '../acl/permissions.ts'
import type { IssuedCredential } from '../operations/credentials.ts'
import { type Command, filtersOf, usage } from './command.ts'
import type { Printer } from './print.ts'
import { parseDuration } from './time/duration.ts'

/** The commands that make, show, rotate and revoke MQTT credentials. */
export const credentialCommands: readonly Command[] = [
  {
    words: 'credentials add',
    options: [
      { flags: '--role <role>', summary: 'publisher or subscriber', required: true },
      { flags: '--label <label>', summary: 'part of the username: a-z, 0-9 and "-"', required: true },
      {
        flags: '--institution <urn>',
        summary: 'institution it may publish for (repeat for several)',
        many: true,
      },
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
    operation: 'credentials.add',
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
    operation: 'credentials.list',
    ...filtersOf('credentials.list'),
    print: (result, printer) => printer.list(result, credentialColumns, 'No credentials.'),
  },
  {
    words: 'credentials show',
    parameters: ['<username>'],
    operation: 'credentials.show',
    args: (input) => ({ username: input.text('username') }),
    print: (result, printer) => printer.properties(result),
  },
  {
    words: 'credentials rotate',
    parameters: ['<username>'],
    options: [
      { flags: '--revoke-after <duration>', summary: 'revoke the old one after 90s, 30m, 24h, 7d …' },
    ],
    operation: 'credentials.rotate',
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
    parameters: ['<username>'],
    operation: 'credentials.revoke',
    args: (input) => ({ username: input.text('username') }),
    print: (result, printer) => printer.sentence('Revoked', result.username),
  },
]

const credentialColumns = [
  ['USERNAME', 'username'],
  ['ROLE', 'role'],
  ['LABEL', 'label'],
  ['INSTITUTIONS', 'institutions'],
  ['CLASSES', 'classes'],
  ['ALLOWED', 'filters'],
  ['SESSIONS', 'sessions'],
  ['LAST USED', 'lastUsedAt'],
  ['CREATED', 'createdAt'],
  ['REVOKED AT', 'revokeAt'],
  ['TEMPORARY FOR', 'user'],
] as const

function printIssued(result: IssuedCredential, printer: Printer): string {
  return `${printer.properties(withoutWarning(result))}\n\nThe password is shown only now: store it.`
}

function withoutWarning({ warning: _printedApart, ...issued }: IssuedCredential) {
  return issued
}

function warningOf({ warning }: IssuedCredential): string | undefined {
  return warning
}
