import { maxBrownout, tracks } from '../bridge-https/lifecycle/track.ts'
import { Type } from '../event/type.ts'
import { dateOrInstant, limit, track, url } from './arguments.ts'
import { changes, loses, type Of, reads } from './operation.ts'
import { boolean, instant, instantOrNull, integer, one, string, stringOrNull } from './results.ts'

const key = {
  kid: string,
  createdAt: instant,
  signsFrom: instant,
  replacedAt: instantOrNull,
  state: one('waiting', 'signing', 'replaced'),
}
const signingKey = Type.Object(key)

const apiTrack = Type.Object({
  track: one(...tracks),
  state: one('live', 'deprecated', 'gone'),
  announcedAt: instantOrNull,
  sunset: instantOrNull,
  link: stringOrNull,
  retiredAt: instantOrNull,
  brownoutUntil: Type.Union([instant, Type.Null()], {
    description: 'until this instant the routes of the track answer 503',
  }),
  requests: Type.Integer({ description: 'of the last 7 days and today' }),
  traffic: Type.Array(Type.Object({ day: string, route: string, requests: integer })),
  left: Type.Array(
    Type.Object({ institutionId: string, email: string, userId: string, lastAt: instant, route: string }),
    { description: 'the last request of each user of the track, the newest first' },
  ),
})

export type ShownSigningKey = Of<typeof signingKey>
export type ApiTrack = Of<typeof apiTrack>

/** The commands about the signing keys and the life cycle of the HTTPS API. */
export const httpsApiOperations = {
  'keys.list': reads(
    'which key signs tokens and pushes from when, and keys that signed some that are still valid',
    { args: { limit }, result: Type.Array(signingKey) },
  ),
  'keys.rotate': loses('make a new key, which signs when receivers have had the time to read it', {
    args: {
      dropOld: Type.Optional(
        Type.Boolean({
          description: 'true to sign with it at once and refuse what the old ones signed, or false',
        }),
      ),
    },
    result: Type.Object({
      ...key,
      dropOld: boolean,
      mayRefuse: Type.Array(Type.Object({ name: string, target: stringOrNull, contact: stringOrNull }), {
        description: 'receivers whose copies of the key set may lack the new key',
      }),
    }),
  }),
  'lifecycle.status': reads('where the tracks of the HTTPS API stand, and who still uses them', {
    result: Type.Array(apiTrack),
  }),
  'lifecycle.announce': changes('give notice that a track (push or publish) retires', {
    args: { track, sunset: dateOrInstant, link: url },
    example: { track: 'push', sunset: '2027-12-31', link: 'https://hub.example/migration' },
    result: apiTrack,
  }),
  'lifecycle.brownout': changes('switch a deprecated track off for a while, so that its last users notice', {
    args: {
      track,
      for: Type.Number({
        minimum: 0,
        maximum: maxBrownout,
        description: `a number of seconds up to ${maxBrownout}; 0 switches it on again`,
      }),
    },
    example: { track: 'push', for: 600 },
    result: apiTrack,
  }),
  'lifecycle.retire': loses('end a track whose sunset has passed and that nobody used for 7 days', {
    args: { track },
    example: { track: 'push' },
    result: apiTrack,
  }),
}
