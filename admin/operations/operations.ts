import type { Static } from 'typebox'
import { maxBrownout } from '../../bridge-https/lifecycle/track.ts'
import { permissions } from '../../bridge-https/users/user.ts'
import type { ShownQueue } from '../../delivery/queue-list.ts'
import { eventClasses } from '../../event/kind.ts'
import { Type } from '../../event/type.ts'
import {
  clientId,
  dateOrInstant,
  email,
  instant,
  institution,
  label,
  limit,
  listOf,
  livestream,
  ofEvents,
  oneOf,
  pageLimit,
  positionOrInstant,
  queue,
  radioFilter,
  subscription,
  text,
  topic,
  track,
  url,
  username,
} from './arguments.ts'
import { changes, loses, type Operation, reads } from './operation.ts'

export type OperationName = keyof typeof operations

/** The arguments of a command, after the check. */
export type Args<Name extends OperationName> = Static<(typeof operations)[Name]['args']>

/** The code of a command. */
type Command<Name extends OperationName> = (args: Args<Name>, who: string) => Promise<unknown>

/** The code of all commands. */
export type OperationCommands = { [Name in OperationName]: Command<Name> }

/** The code of the commands whose names begin with this word. */
export type CommandsOf<Group extends string> = Pick<
  OperationCommands,
  Extract<OperationName, `${Group}.${string}`>
>

const anId = 'urn:org:permanent-livestream:4638c4eac849c618'
const anInstitution = 'urn:org:institution:75b657fb49856f7b'
const aUsername = 'pub-kw1-20260131120000'
const anEmail = 'studio@kuestenfunk.example'
const aQueue = 'de.org.hub.subscription.61cea251-37a7-44cf-a006-3cab4b6a07ae'

/**
 * All commands of operators (design.md §4), the same at all doors: admin socket, `POST /operate/{command}` and
 * `hubctl`. Argument checks and the description of the HTTPS API come from this table.
 */
export const operations = {
  status: reads('what the node does at the moment'),
  trend: reads('how the last hour of this node was, a sample every ten seconds'),
  config: reads('the configuration in effect, secrets masked'),
  audit: reads('who changed what; with a limit, the last changes', {
    who: Type.Optional(text('a user of the operating system, or an e-mail address')),
    action: Type.Optional(text('the name of a command')),
    target: Type.Optional(text('what was changed', 65_535)),
    limit,
  }),

  'credentials.add': changes(
    'make a credential; its password is shown once',
    {
      role: oneOf('publisher', 'subscriber'),
      label,
      institutions: Type.Optional(
        listOf('institution URNs (urn:org:institution:<id>) that a publisher may publish for', institution),
      ),
      classes: Type.Optional(
        listOf(`classes that a publisher is limited to: ${eventClasses.join(', ')}`, oneOf(...eventClasses)),
      ),
      filters: Type.Optional(listOf('topic filters within radio/# that a subscriber may read', radioFilter)),
    },
    { role: 'publisher', label: 'kw1', institutions: [anInstitution] },
  ),
  'credentials.list': reads('all credentials', {
    role: Type.Optional(oneOf('publisher', 'subscriber')),
    institution: Type.Optional(institution),
    limit,
  }),
  'credentials.show': reads('one credential', { username }, { username: aUsername }),
  'credentials.rotate': changes(
    'make a credential with the same permissions; the old one stays until it is revoked',
    {
      username,
      revokeAfter: Type.Optional(
        Type.Number({
          exclusiveMinimum: 0,
          description: 'a number of seconds, more than 0',
        }),
      ),
    },
    { username: aUsername, revokeAfter: 86_400 },
  ),
  'credentials.revoke': loses(
    'end a credential and disconnect everybody who uses it',
    { username },
    { username: aUsername },
  ),

  'users.add': changes(
    'make a user of the HTTPS API; the link to choose a password is shown once',
    {
      email,
      institution,
      permissions: Type.Optional(
        listOf(`permissions: ${permissions.join(', ')}; none means the first two`, oneOf(...permissions)),
      ),
    },
    { email: anEmail, institution: anInstitution, permissions: ['publish'] },
  ),
  'users.list': reads('all users of the HTTPS API', {
    institution: Type.Optional(institution),
    permission: Type.Optional(oneOf('publish', 'subscribe', 'operate')),
    limit,
  }),
  'users.remove': loses(
    'remove a user; its tokens end at once, its subscriptions stay with the institution',
    { email },
    { email: anEmail },
  ),
  'users.reset-password': changes(
    'make a link to choose a new password; the old one works until it is used',
    { email },
    { email: anEmail },
  ),

  'feed.status': reads('the livestream feed in use'),
  'feed.refresh': changes('read the livestream feed now', {
    force: Type.Optional(
      Type.Boolean({ description: 'true to take it even if a guard holds it back, or false' }),
    ),
  }),
  'feed.diff': reads(
    'what would change if the livestream feed were read now, and whether it would be refused',
  ),
  'feed.lookup': reads(
    'livestreams by their id, external id or publisher, or by part of a name, also of the institution; without it, all',
    { id: Type.Optional(text('an id, or part of a name')) },
    { id: anId },
  ),

  'clients.list': reads('who is connected', {
    username: Type.Optional(username),
    node: Type.Optional(text('the name of a node')),
    limit,
  }),
  'clients.count': reads(
    'how many connected clients subscribe to a livestream, or to each; those that read all livestreams apart',
    { livestream: Type.Optional(livestream), limit },
    { livestream: anId },
  ),
  'clients.disconnect': changes(
    'close a connection; the client may connect again',
    { clientId },
    { clientId: 'player-1' },
  ),
  'sessions.list': reads('sessions, connected or waiting for their client', {
    username: Type.Optional(username),
    node: Type.Optional(text('the name of a node')),
    connected: Type.Optional(Type.Boolean({ description: 'true or false' })),
    limit,
  }),
  'sessions.show': reads(
    'one session, with what its client would get if it came back now',
    { clientId },
    { clientId: 'player-1' },
  ),
  'sessions.drop': loses(
    'end a session with everything queued for it, and free its client id',
    { clientId },
    { clientId: 'player-1' },
  ),

  'retained.list': reads('retained messages', {
    filter: Type.Optional(text('a topic filter; without it, all', 65_535)),
    limit,
  }),
  'retained.clear': loses(
    'forget what is retained on a topic',
    { topic },
    { topic: `radio/${anId}/control` },
  ),

  'queues.list': reads('what waits for webhooks and plugin targets, and how they answer', {
    state: Type.Optional(
      oneOf<ShownQueue['state']>(
        ...(['idle', 'beginning', 'delivering', 'behind', 'retrying'] as const),
        ...(['paused', 'disabled', 'closed', 'no target', 'driver down'] as const),
      ),
    ),
    limit,
  }),
  'queues.attempts': reads(
    'the last deliveries of a queue, newest first',
    { name: queue, limit },
    { name: aQueue },
  ),
  'queues.dead-letters': reads('what was given up, and why', { name: queue, limit }, { name: aQueue }),
  'queues.replay': changes(
    'send once more what was given up, all or one message, or all events of a webhook since a time; enables a disabled subscription',
    {
      name: queue,
      messageId: Type.Optional(text('the id of a message that was given up')),
      since: Type.Optional(instant),
    },
    { name: aQueue },
  ),

  'subscriptions.list': reads('webhooks of all institutions, oldest first, and how it goes with them', {
    institution: Type.Optional(institution),
    livestream: Type.Optional(livestream),
    state: Type.Optional(text('the state of a subscription')),
    limit,
  }),
  'subscriptions.show': reads(
    'one of them with its last deliveries, and who paused or disabled it',
    { name: text('the name of a subscription, or its beginning') },
    { name: aQueue },
  ),
  'subscriptions.test': changes(
    'send a marked test message to a webhook now, past what waits; if it is acknowledged, a disabled one is enabled',
    { name: subscription },
    { name: aQueue },
  ),
  'subscriptions.pause': changes(
    'send nothing to a webhook until it is resumed; its events are collected',
    { name: subscription },
    { name: aQueue },
  ),
  'subscriptions.resume': changes(
    'end a pause, and send what was collected, in its order',
    { name: subscription },
    { name: aQueue },
  ),
  'subscriptions.remove': loses(
    'remove a subscription with all that waits for it and its dead letters',
    { name: subscription },
    { name: aQueue },
  ),

  'events.list': reads(
    'what became of events, newest first: of a livestream, an institution or all',
    {
      ...ofEvents,
      since: Type.Optional(positionOrInstant),
      before: Type.Optional(positionOrInstant),
      limit: pageLimit,
    },
    { livestream: anId, limit: 20 },
  ),
  'events.show': reads(
    'one event: by its id, or, where it was refused, by the position that the list shows',
    { id: text('the id or the position of an event') },
    { id: '505315548641748030472978432' },
  ),
  'events.tail': {
    ...reads(
      'events as they are decided, on whichever node',
      {
        ...ofEvents,
        after: Type.Optional(
          Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('now')], {
            description: 'a position (`next` of the answer before), or `now`',
          }),
        ),
      },
      { after: 48_211 },
    ),
    singleAnswerArgs: { after: 'now' },
  },
  'events.newest': reads(
    'the last accepted event that each livestream still shows; livestreams without one first, then the longest silent',
    { institution: Type.Optional(institution), limit },
  ),
  'events.slow': reads(
    'the 20 slowest events of the last hour, with the milliseconds from their arrival to each stage',
  ),
  check: reads(
    'dry run: what would become of an event, and why',
    {
      institution,
      class: Type.Optional(oneOf(...eventClasses)),
      payload: Type.String({ description: 'the bytes of an event in base64' }),
    },
    { institution: anInstitution, payload: 'e30=' },
  ),

  'import.aedes-redis': {
    ...changes(
      'bring over what an Aedes broker keeps in Redis: retained events, sessions, control states that wait for them',
      {
        url: Type.String({
          description: 'the URL of a Redis with data of Aedes, such as redis://user:password@host:6379/0',
        }),
        users: Type.Optional(
          listOf(
            'lines of a client id, a comma and a user name; a client id may end in *',
            Type.String({ maxLength: 65_535 }),
          ),
        ),
        dryRun: Type.Optional(Type.Boolean({ description: 'true to change nothing, or false' })),
        progress: Type.Optional(
          Type.Boolean({ description: 'false to get nothing but the report, or true' }),
        ),
      },
      { url: 'redis://10.0.0.7:6379/0', dryRun: true },
    ),
    singleAnswerArgs: { progress: false },
  },

  'keys.list': reads(
    'which key signs tokens and pushes from when, and keys that signed some that are still valid',
    { limit },
  ),
  'keys.rotate': loses('make a new key, which signs when receivers have had the time to read it', {
    dropOld: Type.Optional(
      Type.Boolean({
        description: 'true to sign with it at once and refuse what the old ones signed, or false',
      }),
    ),
  }),
  'lifecycle.status': reads('where the tracks of the HTTPS API stand, and who still uses them'),
  'lifecycle.announce': changes(
    'give notice that a track (push or publish) retires',
    {
      track,
      sunset: dateOrInstant,
      link: url,
    },
    { track: 'push', sunset: '2027-12-31', link: 'https://hub.example/migration' },
  ),
  'lifecycle.brownout': changes(
    'switch a deprecated track off for a while, so that its last users notice',
    {
      track,
      for: Type.Number({
        minimum: 0,
        maximum: maxBrownout,
        description: `a number of seconds up to ${maxBrownout}; 0 switches it on again`,
      }),
    },
    { track: 'push', for: 600 },
  ),
  'lifecycle.retire': loses(
    'end a track whose sunset has passed and that nobody used for 7 days',
    { track },
    { track: 'push' },
  ),
  'store.accept': loses('a damaged store was replaced by an empty one: go on with that'),
} satisfies Record<string, Operation>

export const operationNames = Object.keys(operations) as OperationName[]
