import { checkAnnouncement, checkTrack, maxBrownout } from '../bridge-https/lifecycle/track.ts'
import { checkEmail, checkUserRequest } from '../bridge-https/users/user.ts'
import type { ApiTrack } from '../operations/https-api.ts'
import type { Result } from '../operations/operations.ts'
import type { ResetLink } from '../operations/users.ts'
import { type Command, filtersOf, type Input, usage } from './command.ts'
import type { Printer } from './print.ts'
import { parseDuration } from './time/duration.ts'
import { localTime } from './time/local-time.ts'

/** The commands about users, signing keys and the life cycle of the HTTPS API. */
export const httpsCommands: readonly Command[] = [
  {
    words: 'users add',
    options: [
      { flags: '--email <email>', summary: 'e-mail address, the name to log in with', required: true },
      { flags: '--institution <urn>', summary: 'institution the user belongs to', required: true },
      {
        flags: '--permission <permission>',
        summary: 'publish, subscribe or operate (repeat); without it publish and subscribe',
        many: true,
      },
    ],
    operation: 'users.add',
    args(input) {
      const request = {
        email: input.text('email'),
        institution: input.text('institution'),
        permissions: input.texts('permission'),
      }
      const judged = checkUserRequest(request)
      if ('error' in judged) throw usage(judged.error)
      return request
    },
    print: printReset,
    json: withoutWarning,
    warning: warningOf,
  },
  {
    words: 'users list',
    operation: 'users.list',
    ...filtersOf('users.list'),
    print: (result, printer) => printer.list(result, userColumns, 'No users.'),
  },
  {
    words: 'users remove',
    parameters: ['<email>'],
    operation: 'users.remove',
    args: emailArgument,
    print: (result, printer) => printer.sentence('Removed', result.email),
  },
  {
    words: 'users reset-password',
    parameters: ['<email>'],
    operation: 'users.reset-password',
    args: emailArgument,
    print: printReset,
  },
  {
    words: 'keys list',
    operation: 'keys.list',
    ...filtersOf('keys.list'),
    print: (result, printer) => printer.list(result, keyColumns, 'No keys.'),
  },
  {
    words: 'keys rotate',
    options: [
      {
        flags: '--drop-old',
        summary: 'sign with it at once, and refuse what the old ones signed: everybody logs in again',
      },
    ],
    operation: 'keys.rotate',
    args: (input) => ({ dropOld: input.flag('dropOld') }),
    print: printRotation,
    warning: refusalWarning,
  },
  {
    words: 'lifecycle status',
    operation: 'lifecycle.status',
    print: printLifecycle,
  },
  {
    words: 'lifecycle announce',
    parameters: ['<track>'],
    options: [
      { flags: '--sunset <date>', summary: 'when it may go, such as 2027-12-31', required: true },
      { flags: '--link <url>', summary: 'where users read what to do', required: true },
    ],
    operation: 'lifecycle.announce',
    args(input) {
      const request = { track: input.text('track'), sunset: input.text('sunset'), link: input.text('link') }
      const judged = checkAnnouncement(request)
      if ('error' in judged) throw usage(judged.error)
      return request
    },
    print: (result, printer) => printer.properties(withoutTraffic(result)),
  },
  {
    words: 'lifecycle brownout',
    parameters: ['<track>'],
    options: [
      { flags: '--for <duration>', summary: 'for 90s, 10m, 2h …, at most 24h' },
      { flags: '--end', summary: 'switch it on again' },
    ],
    operation: 'lifecycle.brownout',
    args(input) {
      const track = input.text('track')
      const wrong = checkTrack(track)
      if (wrong !== undefined) throw usage(wrong)
      const given = input.optional('for')
      if ((given === undefined) !== input.flag('end')) throw usage('either --for or --end must be given')
      const seconds = given === undefined ? 0 : parseDuration(given)
      if (seconds === undefined || seconds > maxBrownout)
        throw usage(`--for must be a duration such as 90s, 10m or 2h, at most 24h, not "${given}"`)
      return { track, for: seconds }
    },
    print: (result, printer) => printer.properties(withoutTraffic(result)),
  },
  {
    words: 'lifecycle retire',
    parameters: ['<track>'],
    operation: 'lifecycle.retire',
    args(input) {
      const track = input.text('track')
      const wrong = checkTrack(track)
      if (wrong !== undefined) throw usage(wrong)
      return { track }
    },
    print: (result, printer) => printer.sentence('Retired', result.track),
  },
]

const userColumns = [
  ['EMAIL', 'email'],
  ['USER ID', 'userId'],
  ['INSTITUTION', 'institutionId'],
  ['PERMISSIONS', 'permissions'],
  ['PASSWORD', 'hasPassword'],
  ['CREATED', 'createdAt'],
] as const

const keyColumns = [
  ['KEY', 'kid'],
  ['STATE', 'state'],
  ['CREATED', 'createdAt'],
  ['SIGNS FROM', 'signsFrom'],
  ['REPLACED', 'replacedAt'],
] as const

const trackColumns = [
  ['TRACK', 'track'],
  ['STATE', 'state'],
  ['ANNOUNCED', 'announcedAt'],
  ['SUNSET', 'sunset'],
  ['OFF UNTIL', 'brownoutUntil'],
  ['RETIRED', 'retiredAt'],
  ['REQUESTS, 7 DAYS', 'requests'],
] as const

const trafficColumns = [
  ['DAY', 'day'],
  ['ROUTE', 'route'],
  ['REQUESTS', 'requests'],
] as const

const leftColumns = [
  ['TRACK', 'track'],
  ['INSTITUTION', 'institutionId'],
  ['USER', 'email'],
  ['LAST REQUEST', 'lastAt'],
  ['ROUTE', 'route'],
] as const

function emailArgument(input: Input): Record<string, unknown> {
  const email = input.text('email')
  const wrong = checkEmail(email)
  if (wrong !== undefined) throw usage(wrong)
  return { email }
}

const receiverColumns = [
  ['RECEIVER', 'name'],
  ['TARGET', 'target'],
  ['CONTACT', 'contact'],
] as const

function printRotation(
  { kid, signsFrom, dropOld, mayRefuse }: Result<'keys.rotate'>,
  printer: Printer,
): string {
  if (dropOld) {
    const receivers = printer.list(mayRefuse, receiverColumns, 'No receiver is pushed to.')
    return `${printer.sentence('Signing from now on with', kid)}\n\n${receivers}`
  }
  const from = localTime(signsFrom)
  return printer.sentence(`Receivers can read it now, and it signs from ${from} on:`, kid)
}

/** What follows from a key that signs before receivers know it (design.md §10). */
function refusalWarning({ mayRefuse }: Result<'keys.rotate'>): string | undefined {
  if (mayRefuse.length === 0) return undefined
  return (
    'these receivers may refuse what the new key signs until they read the key set again. ' +
    'One that answers 204 meanwhile loses events: hubctl queues replay NAME --since TIME sends them once more'
  )
}

function printReset(result: ResetLink, printer: Printer): string {
  return `${printer.properties(withoutWarning(result))}\n\nThe link works once and is shown only now: hand it on.`
}

function printLifecycle(tracks: readonly ApiTrack[], printer: Printer): string {
  const traffic = tracks.flatMap((track) => track.traffic)
  const left = tracks.flatMap(({ left, track }) => left.map((user) => ({ ...user, track })))
  return [
    printer.list(tracks, trackColumns, 'No tracks.'),
    printer.list(traffic, trafficColumns, 'No requests in the last 7 days.'),
    printer.list(left, leftColumns, 'No user asked in the last 90 days.'),
  ].join('\n\n')
}

function withoutTraffic({ traffic: _inStatus, left: _alsoThere, ...track }: ApiTrack) {
  return track
}

function withoutWarning({ warning: _printedApart, ...link }: ResetLink) {
  return link
}

function warningOf({ warning }: ResetLink): string | undefined {
  return warning
}
