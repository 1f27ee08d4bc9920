import type { Static } from 'typebox'
import { maxWebhookUrlLength } from '../../delivery/webhook/webhook-url.ts'
import { one, orNull, string, stringOrNull } from '../../event/answer-fields.ts'
import { delay, kinds, livestreams, maxAge, ordering, types } from '../../event/delivery-fields.ts'
import { warning } from '../../event/outcome-schemas.ts'
import { instant as givenInstant } from '../../event/schema.ts'
import { Type } from '../../event/type.ts'
import { passwordLength } from '../users/passwords.ts'
import * as examples from './examples.ts'
import { Delivery } from './history-schemas.ts'
import type { PublishedEvent } from './published-event.ts'

/*
 * The bodies of the HTTPS API (service.md §2.7 to §2.9, design.md §9). The same schemas check requests and describe the
 * API.
 */

const email = (description: string) => Type.String({ format: 'email', maxLength: 254, description })
const trace = Type.Null({ description: 'Deprecated, always null', deprecated: true })
const count = (description: string) =>
  Type.Integer({ minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER, description })
const instant = (description: string) => Type.String({ format: 'date-time', description })

export type LogInBody = Static<typeof LogInBody>
export const LogInBody = Type.Object(
  {
    email: email('an e-mail address'),
    password: Type.String({ maxLength: passwordLength.max, description: 'a password' }),
  },
  { examples: [{ email: 'studio@kuestenfunk.example', password: 'correct horse battery' }] },
)

export type RefreshBody = Static<typeof RefreshBody>
export const RefreshBody = Type.Object(
  { refreshToken: Type.String({ maxLength: 8192, description: 'the refreshToken of a log-in' }) },
  { examples: [examples.refresh] },
)

export type AskResetBody = Static<typeof AskResetBody>
export const AskResetBody = Type.Object(
  { email: email('an e-mail address') },
  { title: 'Ask for a link', examples: [{ email: 'studio@kuestenfunk.example' }] },
)

export type UseResetBody = Static<typeof UseResetBody>
export const UseResetBody = Type.Object(
  {
    token: Type.String({ maxLength: 200, description: 'the token of the link' }),
    password: Type.String({
      minLength: passwordLength.min,
      maxLength: passwordLength.max,
      description: `a password of ${passwordLength.min} to ${passwordLength.max} characters`,
    }),
  },
  { title: 'Choose a password', examples: [examples.useReset] },
)

export type ContactBody = Static<typeof ContactBody>
export const ContactBody = Type.Object(
  { token: Type.String({ maxLength: 200, description: 'the token of the link' }) },
  { examples: [{ token: examples.useReset.token }] },
)

export const LogInAnswer = Type.Object(
  {
    token: Type.String({ description: 'Access token (JWT), goes into the header Authorization' }),
    refreshToken: Type.String({ description: 'Brings a new token, until the password changes' }),
    expiresIn: Type.Integer({ description: 'Seconds that the token is valid' }),
    expires: instant('When the token expires'),
    user: Type.Object({
      user_id: Type.String(),
      email: Type.String(),
      email_verified: Type.Boolean(),
      institution: Type.String({ description: 'urn:org:institution:<id>' }),
    }),
    trace,
  },
  { $id: 'LogIn', title: 'LogIn', examples: [examples.logIn] },
)

export const TraceAnswer = Type.Object(
  { trace },
  { $id: 'Trace', title: 'Trace', examples: [examples.trace] },
)

export const PublishAnswer = Type.Object(
  {
    statuses: Type.Object(
      {
        published: count('Livestreams the event went out to'),
        blocked: count('Services the user may not publish for'),
        failed: count('Topics created now: send the event again'),
      },
      { description: 'Numbers of services' },
    ),
    errors: Type.Optional(
      Type.Array(Type.Unsafe<Static<typeof ErrorItem>>({ $ref: 'ErrorItem' }), {
        minItems: 1,
        description: 'Why services were blocked or failed; absent when all were published',
      }),
    ),
    warnings: Type.Optional(
      Type.Array(warning, {
        minItems: 1,
        description:
          'What is probably wrong with the event; in a dry run also services for which a real event would make the topic first. Absent when there is nothing to say.',
      }),
    ),
    dryRun: Type.Optional(
      Type.Literal(true, { description: 'Nothing was done; absent when the event was taken' }),
    ),
    event: Type.Unsafe<Static<typeof PublishedEvent>>({
      $ref: 'PublishedEvent',
      description: 'As stored, with its id. Each accepted service carries its topic.',
    }),
    trace,
  },
  { $id: 'PublishResult', title: 'PublishResult', examples: [examples.published] },
)

export const Topic = Type.Object(
  {
    type: Type.Literal('PUBSUB'),
    id: Type.String({ description: 'urn:org:permanent-livestream:<id>' }),
    name: Type.String({ description: 'de.org.hub.<stage>.<percent-encoded id>' }),
    path: Type.String({ description: 'projects/<project>/topics/<name>' }),
    labels: Type.Record(Type.String(), Type.String(), {
      description: 'What the livestream feed says of it; empty for a livestream it does not know',
    }),
  },
  { $id: 'Topic', title: 'Topic', examples: [examples.topic] },
)

/** Which events a webhook gets, and how: what was asked for is shown again. */
const deliveryFields = {
  livestreams: Type.Optional(livestreams),
  kinds: Type.Optional(kinds),
  types: Type.Optional(types),
  maxAge: Type.Optional(maxAge),
  delay: Type.Optional(delay),
  ordering: Type.Optional(ordering),
}

export type SubscribeBody = Static<typeof SubscribeBody>
export const SubscribeBody = Type.Object(
  {
    type: Type.Literal('PUBSUB', { description: 'PUBSUB' }),
    method: Type.Literal('PUSH', { description: 'PUSH' }),
    url: Type.String({
      maxLength: maxWebhookUrlLength,
      description: 'a public https URL with a valid certificate',
    }),
    contact: email('an e-mail address for problems with the subscription'),
    topic: Type.String({ maxLength: 500, description: 'the id of a topic' }),
    from: Type.Optional(
      givenInstant(
        'an earlier instant: the webhook begins with the events that were accepted from then on, as far as the hub still has them. Without it, with what is accepted from now on',
      ),
    ),
    ...deliveryFields,
  },
  {
    examples: [examples.subscribe, examples.subscribeFrom, examples.subscribeWorth, examples.subscribeAll],
  },
)

export const Subscription = Type.Object(
  {
    type: Type.Literal('PUBSUB'),
    method: Type.Literal('PUSH'),
    name: Type.String({ description: 'de.org.hub.subscription.<subscription-id>' }),
    path: Type.String({ description: 'projects/<project>/subscriptions/<name>' }),
    topic: Type.Object({ id: Type.String(), name: Type.String(), path: Type.String() }),
    ackDeadlineSeconds: count('Seconds the receiver has for its answer'),
    retryPolicy: stringOrNull,
    serviceAccount: Type.String({ description: 'The claim email of its pushes; compare it' }),
    url: Type.String(),
    contact: Type.String(),
    institutionId: Type.String({ description: 'urn:org:institution:<id>' }),
    from: Type.Optional(instant('When the events that it began with were accepted, as asked for')),
    ...deliveryFields,
    state: Type.Union([Type.Literal('active'), Type.Literal('retrying'), Type.Literal('disabled')], {
      description:
        'retrying: the last delivery failed, it is tried again. disabled: the webhook answered 410 and nothing else for an hour; what arrives waits until a test message is acknowledged or something is replayed. Also disabled, with the reason `paused by the operator` or `paused by the institution`: what arrives waits until one of them resumes it',
    }),
    since: instant('When this state began'),
    reason: orNull(string, 'Why it is not active; for people, such as `answered 503`'),
    warnings: Type.Optional(
      Type.Array(Type.Unsafe<Static<typeof ErrorItem>>({ $ref: 'ErrorItem' }), {
        minItems: 1,
        description:
          'Only in the answer to a new subscription: fields of the request that the hub does not know, and did not read',
      }),
    ),
  },
  { $id: 'Subscription', title: 'Subscription', examples: [examples.subscription] },
)

export const Deleted = Type.Object(
  { valid: Type.Boolean(), trace },
  { $id: 'Deleted', title: 'Deleted', examples: [examples.deleted] },
)

export const SigningSecret = Type.Object(
  {
    secret: Type.String({
      description: 'What `webhook-signature` is made with: `whsec_` and base64. Shown once',
    }),
    previousUntil: orNull(instant('Until then those before sign, too'), 'Null: there was none before'),
  },
  { $id: 'SigningSecret', title: 'SigningSecret', examples: [examples.signingSecret] },
)

export type ReplayBody = Static<typeof ReplayBody>
export const ReplayBody = Type.Object(
  {
    subscription: Type.String({ maxLength: 500, description: 'the name of a subscription' }),
    messageId: Type.Optional(
      Type.String({ maxLength: 200, description: 'one message; without it all that were given up' }),
    ),
    since: Type.Optional(
      givenInstant('also all events that were accepted from then on, delivered or not; not with messageId'),
    ),
  },
  { title: 'Replay', examples: [examples.replay, examples.replaySince] },
)

export const ReplayAnswer = Type.Object(
  { replayed: count('Messages that are sent again'), trace },
  { $id: 'Replayed', title: 'Replayed', examples: [examples.replayed] },
)

export type PushBody = Static<typeof PushBody>
export const PushBody = Type.Object(
  {
    message: Type.Object(
      {
        data: Type.String({ description: 'base64 of JSON' }),
        attributes: Type.Optional(Type.Record(Type.String(), Type.String())),
        messageId: Type.String({ maxLength: 200, description: 'the id of the message' }),
        publishTime: Type.Optional(Type.String()),
      },
      { description: 'a message in the wire format of pushes' },
    ),
    subscription: Type.String({ maxLength: 500, description: 'the name of a subscription' }),
  },
  { title: 'Push', examples: [examples.push] },
)

export type PluginWork = Static<typeof PluginWork>
export const PluginWork = Type.Object(
  {
    action: Type.String({ pattern: '^plugins\\.[^/]{1,64}\\.event$', description: 'plugins.<type>.event' }),
    event: Type.Record(Type.String(), Type.Unknown(), { description: 'an event' }),
    plugin: Type.Record(Type.String(), Type.Unknown(), { description: 'an entry of its plugins' }),
    institutionId: Type.String({ maxLength: 200, description: 'an institution URN' }),
  },
  { title: 'PluginWork' },
)

export const TestAnswer = Type.Object(
  { delivered: Type.Boolean(), delivery: Delivery, trace },
  { $id: 'TestResult', title: 'TestResult', examples: [examples.tested] },
)

export const ServiceInfo = Type.Object(
  { service: Type.String(), version: Type.String(), stage: Type.String(), status: Type.Literal('ok') },
  { $id: 'ServiceInfo', title: 'ServiceInfo', examples: [examples.serviceInfo] },
)

export const Health = Type.Object(
  {
    status: one('ok', 'unavailable'),
    store: Type.Union([Type.Boolean(), Type.Literal('replaced')]),
    feed: Type.Boolean(),
  },
  { $id: 'Health', title: 'Health', examples: [examples.health] },
)

export const Liveness = Type.Object(
  { status: Type.Literal('ok') },
  { $id: 'Liveness', title: 'Liveness', examples: [{ status: 'ok' }] },
)

export const NotReady = Type.Object(
  {
    status: Type.Literal('unavailable'),
    reason: one('cut off', 'store'),
  },
  { $id: 'NotReady', title: 'NotReady', examples: [{ status: 'unavailable', reason: 'cut off' }] },
)

export const ErrorItem = Type.Object(
  {
    path: Type.String({ description: 'Place in the request, such as .body.start' }),
    message: Type.String(),
    errorCode: Type.String({ description: 'Stable; the message may change' }),
  },
  { $id: 'ErrorItem', title: 'ErrorItem', examples: [examples.errorItem] },
)
const message = Type.String({ description: 'For people' })

export const ErrorWithItems = Type.Object(
  { message, errors: Type.Array(Type.Unsafe({ $ref: 'ErrorItem' }), { minItems: 1 }), trace },
  {
    $id: 'ErrorWithItems',
    title: 'ErrorWithItems',
    additionalProperties: false,
    examples: [examples.errorWithItems],
  },
)

export const PlainError = Type.Object(
  { message, trace },
  { $id: 'Error', title: 'Error', additionalProperties: false, examples: [examples.plainError] },
)
