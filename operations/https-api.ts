import { checkAnnouncement, maxBrownout, tracks } from '../bridge-https/lifecycle/track.ts'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  string,
  stringOrNull,
} from '../event/answer-fields.ts'
import { Type } from '../event/type.ts'
import { dateOrInstant, errorOf, limit, track, url } from './arguments.ts'
import { unlessError } from './errors.ts'
import { choose } from './lookups/choose.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, loses, type Of, reads } from './operation.ts'

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
  brownoutUntil: orNull(instant, 'until this instant the routes of the track answer 503'),
  requests: Type.Integer({ description: 'of the last 7 days and today' }),
  traffic: Type.Array(Type.Object({ day: string, route: string, requests: integer })),
  left: Type.Array(
    Type.Object({ institutionId: string, email: string, userId: string, lastAt: instant, route: string }),
    { description: 'the last request of each user of the track, the newest first' },
  ),
})

export type ApiTrack = Of<typeof apiTrack>

/** The commands about the signing keys and the life cycle of the HTTPS API. */
export const httpsApiOperations = {
  'keys.list': reads(
    'which key signs tokens and pushes from when, and keys that signed some that are still valid',
    {
      args: { limit },
      console: { view: 'node', title: 'Keys that sign tokens', everySeconds: 30, empty: 'There is no key.' },
      hubctl: {
        about: '[What keys are for](operators.md#signing-keys).',
        columns: [['KEY', 'kid'], 'state', 'createdAt', ['SIGNS FROM', 'signsFrom'], 'replacedAt'],
      },
      result: Type.Array(signingKey),
      run: ({ keys }, { limit }) => choose(keys.list(), {}, limit),
    },
  ),
  'keys.rotate': loses('make a new key, which signs when receivers have had the time to read it', {
    args: {
      dropOld: Type.Optional(
        Type.Boolean({
          description: 'true to sign with it at once and refuse what the old ones signed, or false',
        }),
      ),
    },
    console: {
      view: 'node',
      title: 'Make a new key',
      of: 'keys.list',
      fields: {
        dropOld: {
          label: 'Refuse at once what the old ones signed',
          hint: '',
          loss: 'The new key signs at once, and everything that the old keys signed is refused: all users log in again, you as well. Receivers of webhooks may refuse pushes until they read the new key.',
        },
      },
      loss: [
        'Receivers can read the new key at once. It signs when they have had the time to (HUB_KEY_LEAD). What the old key signed stays valid until it expires.',
      ],
      answer: {
        title: 'The new key',
        columns: ['kid', 'signsFrom', ['Who may refuse pushes until they read it', 'mayRefuse']],
      },
    },
    hubctl: {
      about:
        'It signs after `HUB_KEY_LEAD` seconds. With `--drop-old` all log-ins end, and you see which receivers may refuse pushes.',
      typed: {
        dropOld: [
          '--drop-old',
          'sign with it at once, and refuse what the old ones signed: everybody logs in again',
        ],
      },
    },
    result: Type.Object({
      ...key,
      dropOld: boolean,
      mayRefuse: Type.Array(Type.Object({ name: string, target: stringOrNull, contact: stringOrNull }), {
        description: 'receivers whose copies of the key set may lack the new key',
      }),
    }),
    async run({ keys, deliveries }, { dropOld = false }, { note }) {
      const key = await keys.rotate({
        dropOld,
        first: ({ kid, signsFrom }) => note(kid, { dropOld, signsFrom }),
      })
      return { ...key, dropOld, mayRefuse: dropOld ? await receivers(deliveries) : [] }
    },
  }),
  'lifecycle.status': reads('where the tracks of the HTTPS API stand, and who still uses them', {
    console: {
      view: 'lifecycle',
      title: 'Life cycle of the HTTPS API',
      everySeconds: 10,
      panels: { push: 'Webhooks (push)', publish: 'Publishing and log-in over HTTPS (publish)' },
      columns: [
        'track',
        'state',
        'announcedAt',
        'sunset',
        ['What users read', 'link'],
        ['Its routes answer 503 until', 'brownoutUntil'],
        'retiredAt',
        ['Requests, 7 days and today', 'requests'],
        ['Who still uses it', 'left'],
        ['Requests by day', 'traffic'],
      ],
    },
    result: Type.Array(apiTrack),
    run: ({ lifecycle }) => lifecycle.status(),
  }),
  'lifecycle.announce': changes('give notice that a track (push or publish) retires', {
    args: { track, sunset: dateOrInstant, link: url },
    example: { track: 'push', sunset: '2027-12-31', link: 'https://hub.example/migration' },
    console: {
      view: 'lifecycle',
      title: 'Announce its end',
      of: 'lifecycle.status',
      by: 'track',
      where: { state: ['live', 'deprecated'] },
      fields: {
        sunset: { hint: 'From then on it may be retired' },
        link: { hint: 'Where users read what to do' },
      },
    },
    hubctl: {
      typed: {
        sunset: ['--sunset <date>', 'when it may go, such as 2027-12-31'],
        link: ['--link <url>', 'where users read what to do'],
      },
    },
    check: (announcement) => errorOf(checkAnnouncement(announcement)),
    result: apiTrack,
    async run({ lifecycle }, { track, sunset, link }, { note }) {
      await note(track, { state: 'deprecated', sunset, link })
      return unlessError(await lifecycle.announce({ track, sunset, link }))
    },
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
    console: {
      view: 'lifecycle',
      title: 'Switch it off for a while',
      of: 'lifecycle.status',
      by: 'track',
      where: { state: ['deprecated'] },
      fields: {
        for: {
          label: 'Its routes answer 503',
          hint: 'So that its last users notice',
          usual: '600',
          choices: {
            0: 'no more: it is on again',
            60: 'for 1 minute',
            600: 'for 10 minutes',
            3600: 'for 1 hour',
            14400: 'for 4 hours',
            86400: 'for 1 day',
          },
        },
      },
    },
    hubctl: { typed: { for: ['--for <duration>', 'for 90s, 10m, 2h …, at most 24h'] } },
    result: apiTrack,
    async run({ lifecycle }, { track, for: seconds }, { note }) {
      await note(track, { seconds })
      return unlessError(await lifecycle.brownout(track, seconds))
    },
  }),
  'lifecycle.retire': loses('end a track whose sunset has passed, after 7 days without a request', {
    args: { track },
    example: { track: 'push' },
    console: {
      view: 'lifecycle',
      title: 'Retire',
      of: 'lifecycle.status',
      by: 'track',
      where: { state: ['deprecated'] },
      loss: [
        'Its routes answer 410 for ever. With the track push, all webhooks end.',
        '{requests|request} came in the last 7 days and today.',
      ],
    },
    hubctl: { done: 'Retired {track}.' },
    result: apiTrack,
    async run({ lifecycle }, { track }, { note }) {
      const { sunset, link } = lifecycle.of(track)
      await note(track, { state: 'gone', sunset, link })
      return unlessError(await lifecycle.retire(track))
    },
  }),
}

/** The receivers of pushes and plugin work. Their copies of the key set may lack the newest key. */
async function receivers(deliveries: NodeParts['deliveries']) {
  const pushedTo = (await deliveries.list()).filter(
    ({ state }) => state !== 'closed' && state !== 'no target',
  )
  return pushedTo.map(({ name, target, contact }) => ({ name, target, contact }))
}
