import { track } from '../../event/kinds/track.ts'

/*
 * Examples for the API description. All are about one livestream of the sample feed.
 */

const livestreamId = 'urn:org:permanent-livestream:4638c4eac849c618'
const institutionId = 'urn:org:institution:75b657fb49856f7b'
const topicName = `de.org.hub.test.${encodeURIComponent(livestreamId)}`
const topicPath = `projects/hub/topics/${topicName}`
const subscriptionName = 'de.org.hub.subscription.61cea251-37a7-44cf-a006-3cab4b6a07ae'
export const messageId = '505315548641748030472978432'
const token = 'eyJhbGciOiJSUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiIyYWU5NDBjMiJ9.c2lnbmF0dXJl'
const refreshToken = 'eyJhbGciOiJSUzI1NiIsInR5cCI6InJ0K2p3dCJ9.eyJzdWIiOiIyYWU5NDBjMiJ9.c2lnbmF0dXJl'

const pluginWork = Buffer.from(
  JSON.stringify({ action: 'plugins.dts.event', event: {}, plugin: { type: 'dts' }, institutionId }),
).toString('base64')

export const trace = { trace: null }

export const refresh = { refreshToken }

export const useReset = {
  token: 'mNMiy_War7WUo6hrD4XWfi5CDLx99YhMLNFOs6of31Q',
  password: 'correct horse battery',
}

export const firstOperator = { ...useReset, email: 'operator@hub.example' }

export const logIn = {
  token,
  refreshToken,
  expiresIn: 3600,
  expires: '2026-01-31T12:00:00.000Z',
  user: {
    user_id: '2ae940c2-c22a-42be-a799-bef54909ea05',
    email: 'studio@kuestenfunk.example',
    email_verified: true,
    institution: institutionId,
  },
  trace: null,
}

export const session = {
  token,
  expiresIn: 3600,
  expires: logIn.expires,
  user: { ...logIn.user, permissions: ['publish', 'subscribe'] },
  trace: null,
}

export const mqttCredentialBody = { filters: [`radio/${livestreamId}/#`] }

export const mqttCredential = {
  username: 'sub-page-k3v9x0b7q2m5d8fa',
  password: 'Cb9ZlQ5f3v1Qx8sJ0pU2yA7dK4mN6tR1wE3hG5jL9oI',
  url: 'wss://hub.example/mqtt',
  filters: mqttCredentialBody.filters,
  expiresAt: '2026-01-31T12:00:00.000Z',
}

export const livestreams = {
  institutions: [{ id: institutionId, title: 'Küstenfunk', acronym: 'KF' }],
  livestreams: [{ id: livestreamId, title: 'Küstenwelle', institutionId }],
  trace: null,
}

export const silentLivestreams = {
  livestreams: [{ id: livestreamId, since: '2026-01-31T11:42:00.000Z' }],
  trace: null,
}

const playing = { event: track.kinds[0].name, ...track.example, id: messageId }

export const livestreamNow = {
  id: livestreamId,
  title: 'Küstenwelle',
  institution: { id: institutionId, title: 'Küstenfunk' },
  playing,
  next: null,
  controls: [],
  data: null,
  at: '2026-01-31T11:00:00.120Z',
  position: 4711,
  stale: false,
}

export const playedAt = { at: '2026-01-31T11:02:00.000Z', before: null, playing, after: null }

export const published = {
  statuses: { published: 1, blocked: 0, failed: 0 },
  event: {
    type: 'music',
    start: '2026-01-31T12:00:00+01:00',
    length: 214,
    title: 'Ebbe und Flut',
    playlistItemId: 'kw1-20260131-0042',
    services: [
      {
        type: 'PermanentLivestream',
        externalId: 'crid://kuestenfunk.example/410100/kw1',
        publisherId: 'urn:org:publisher:a15352e28c84d389',
        id: livestreamId,
        topic: { id: livestreamId, name: topicName, status: 'MESSAGE_SENT', messageId },
      },
    ],
    event: 'de.org.hub.v1.radio.track.playing',
    id: messageId,
  },
  trace: null,
}

const { topic: _ofTheAnswer, ...service } = published.event.services[0] ?? {}
const keptBody = { ...published.event, event: 'de.org.hub.v1.radio.track.playing', services: [service] }

export const history = {
  events: [{ position: 48_211, acceptedAt: '2026-01-31T11:00:00.071Z', event: keptBody }],
  next: 48_211,
  trace: null,
}

export const report = {
  outcome: 'published',
  statuses: { published: 1, blocked: 0, failed: 0 },
  event: 'de.org.hub.v1.radio.track.playing',
  id: messageId,
  playlistItemId: 'kw1-20260131-0042',
  name: null,
  eventTime: '2026-01-31T12:00:00+01:00',
  services: [livestreamId],
  errors: [],
  receivedAt: '2026-01-31T11:00:00.070Z',
  clientId: 'studio-1',
  payloadHash: '9f86d081884c7d65',
  trace: null,
}

export const keptEvent = {
  position: 48_212,
  decidedAt: '2026-01-31T11:00:00.071Z',
  report,
  event: keptBody,
  creator: null,
  receivers: { clients: 212, webhooks: [], others: 3 },
  trace: null,
}

export const topic = {
  type: 'PUBSUB',
  id: livestreamId,
  name: topicName,
  path: topicPath,
  labels: {
    title: 'Küstenwelle 1',
    externalId: 'crid://kuestenfunk.example/410100/kw1',
    publisherId: 'urn:org:publisher:a15352e28c84d389',
    institutionId,
  },
}

export const subscription = {
  type: 'PUBSUB',
  method: 'PUSH',
  name: subscriptionName,
  path: `projects/hub/subscriptions/${subscriptionName}`,
  topic: { id: livestreamId, name: topicName, path: topicPath },
  ackDeadlineSeconds: 20,
  retryPolicy: null,
  serviceAccount: 'publisher@hub.example',
  url: 'https://hooks.kuestenfunk.example/events',
  contact: 'studio@kuestenfunk.example',
  institutionId,
  state: 'active',
  since: '2026-01-31T11:00:00.000Z',
  reason: null,
}

export const subscribe = {
  type: 'PUBSUB',
  method: 'PUSH',
  url: subscription.url,
  contact: subscription.contact,
  topic: livestreamId,
}

export const subscribeFrom = { ...subscribe, from: '2026-01-31T10:00:00Z' }

export const subscribeWorth = { ...subscribe, maxAge: 'element', delay: 20_000 }

export const subscribeAll = {
  ...subscribe,
  livestreams: ['*'],
  kinds: ['playing'],
  types: ['music'],
  ordering: 'livestream',
}

export const deleted = { valid: true, trace: null }

export const signingSecret = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw9yyVLLNoZ4E=',
  previousUntil: '2026-02-01T12:00:00.000Z',
}

export const replay = { subscription: subscriptionName }

export const replaySince = { ...replay, since: '2026-01-31T10:00:00Z' }

export const replayed = { replayed: 3, trace: null }

export const push = {
  message: { data: pluginWork, attributes: {}, messageId, publishTime: '2026-01-31T12:00:00.000Z' },
  subscription: subscriptionName,
}

export const serviceInfo = { service: 'now-playing-hub', version: '3.0.0', stage: 'test', status: 'ok' }

export const health = { status: 'ok', store: true, feed: true }

export const errorItem = {
  path: '.body.start',
  message: 'A required field is missing: expected "start" in TrackEvent',
  errorCode: 'required.openapi.validation',
}

export const errorWithItems = { message: 'Invalid input', errors: [errorItem], trace: null }

export const plainError = { message: 'Not found', trace: null }

export const delivery = {
  messageId,
  time: '2026-01-31T12:00:00.000Z',
  status: 204,
  duration: 38,
  reason: null,
}

export const tested = { delivered: true, delivery, trace: null }
