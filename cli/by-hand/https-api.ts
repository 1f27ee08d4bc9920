import { maxBrownout } from '../../bridge-https/lifecycle/track.ts'
import type { ApiTrack } from '../../operations/https-api.ts'
import type { Result } from '../../operations/operations.ts'
import { type ByHand, usage } from '../command.ts'
import type { Printer } from '../print.ts'
import { parseDuration } from '../time/duration.ts'
import { localTime } from '../time/local-time.ts'

/** The signing keys and the life cycle of the HTTPS API. */
export const httpsApi: ByHand = {
  'keys.rotate': { print: printRotation, warning: refusalWarning },
  'lifecycle.status': { print: printLifecycle },
  'lifecycle.announce': { print: printTrack },
  'lifecycle.brownout': {
    parameters: ['<track>'],
    options: [
      { flags: '--for <duration>', summary: 'for 90s, 10m, 2h …, at most 24h' },
      { flags: '--end', summary: 'switch it on again' },
    ],
    args(input) {
      const track = input.text('track')
      const given = input.optional('for')
      if ((given === undefined) !== input.flag('end')) throw usage('either --for or --end must be given')
      const seconds = given === undefined ? 0 : parseDuration(given)
      if (seconds === undefined || seconds > maxBrownout)
        throw usage(`--for must be a duration such as 90s, 10m or 2h, at most 24h, not "${given}"`)
      return { track, for: seconds }
    },
    print: printTrack,
  },
}

const trackColumns = [
  'track',
  'state',
  'announcedAt',
  'sunset',
  ['OFF UNTIL', 'brownoutUntil'],
  'retiredAt',
  ['REQUESTS, 7 DAYS', 'requests'],
] as const
const trafficColumns = ['day', 'route', 'requests'] as const
const leftColumns = [
  'track',
  ['INSTITUTION', 'institutionId'],
  ['USER', 'email'],
  ['LAST REQUEST', 'lastAt'],
  'route',
] as const
const receiverColumns = [['RECEIVER', 'name'], 'target', 'contact'] as const

function printRotation(
  { kid, signsFrom, dropOld, mayRefuse }: Result<'keys.rotate'>,
  printer: Printer,
): string {
  if (dropOld) {
    const receivers = printer.list(mayRefuse, receiverColumns, 'No receiver is pushed to.')
    return `${printer.sentence('Signing from now on with {kid}.', { kid })}\n\n${receivers}`
  }
  const from = localTime(signsFrom)
  return printer.sentence('Receivers can read it now, and it signs from {from} on: {kid}.', { from, kid })
}

/** What follows from a key that signs before receivers know it (design.md §10). */
function refusalWarning({ mayRefuse }: Result<'keys.rotate'>): string | undefined {
  if (mayRefuse.length === 0) return undefined
  return (
    'these receivers may refuse what the new key signs until they read the key set again. ' +
    'One that answers 204 meanwhile loses events: hubctl queues replay NAME --since TIME sends them once more'
  )
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

function printTrack({ traffic: _inStatus, left: _alsoThere, ...track }: ApiTrack, printer: Printer): string {
  return printer.properties(track)
}
