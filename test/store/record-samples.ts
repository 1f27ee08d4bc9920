import { generateKeyPairSync } from 'node:crypto'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const time = '2026-01-01T00:00:00.000Z'
const station = 'urn:org:permanent-livestream:4638c4eac849c618'
const topic = `radio/${station}/track/playing`
const queue = { keep: 'latest', time: 1 }
const principal = { role: 'subscriber', username: 'sub-x', filters: ['radio/#'] }
const publisher = { role: 'publisher', username: 'pub-x', institutions: ['i'], classes: [] }
const attempt = { messageId: 'm', time, status: null, duration: 1, reason: 'no answer' }
const item = {
  sequence: 5,
  messageId: 'm',
  details: { livestreamId: station },
  enqueuedAt: 1,
  tries: 1,
  refusals: 0,
  attempts: [attempt],
}

/** A record as tests write it: bytes before the JSON, the JSON, bytes behind it. */
export interface Sample {
  key: string
  before?: string
  json?: unknown
  behind?: string
}

/** Good records, at least one of each family that exports have. */
export const samples: readonly Sample[] = [
  {
    key: `heard/${encodeURIComponent(station)}`,
    json: { institutionId: 'i', gaps: Buffer.alloc(336).toString('base64'), hour: 1, since: 1, at: 1 },
  },
  {
    key: `counted/2026-W48/i/${encodeURIComponent(station)}`,
    json: { sums: { events: 3, gaps: 1 }, longest: [{ from: 1, minutes: 12 }] },
  },
  { key: 'refused/2026-W48/i', json: { events: 1, codes: { 'payload.json': 1 } } },
  {
    key: `ban/${encodeURIComponent('address 192.0.2.0/24')}`,
    json: { kind: 'address', value: '192.0.2.0/24', reason: 'r', since: time, until: time },
  },
  {
    key: 'institution-contact/i',
    json: {
      institutionId: 'i',
      email: 'a@b.example',
      setAt: time,
      unsubscribe: 's',
      confirm: { hash: 'h', until: time },
      confirmedAt: time,
      unsubscribedAt: time,
    },
  },
  {
    key: 'institution-told/i',
    json: {
      contactSetAt: time,
      mails: [1],
      silent: { [station]: 1 },
      loops: { [station]: 1 },
      codes: { 'payload.json': 1 },
    },
  },
  {
    key: 'credential/sub-x',
    json: {
      username: 'sub-x',
      role: 'subscriber',
      label: 'x',
      institutions: [],
      filters: ['radio/#'],
      classes: [],
      createdAt: time,
      salt: 's',
      hash: 'h',
      revokeAt: '2099-01-01T00:00:00.000Z',
      user: 'a@b.example',
      login: { userId: 'u', generation: 1, loginId: 'l' },
    },
  },
  {
    key: 'credential/read-x',
    json: {
      username: 'read-x',
      role: 'reader',
      label: 'x',
      institutions: [],
      filters: ['radio/#'],
      classes: [],
      createdAt: time,
      salt: 's',
      hash: 'h',
    },
  },
  { key: 'credential-use/sub-x', json: { lastAt: time } },
  { key: 'credential-name/sub-x-20260101000000' },
  {
    key: 'user/u',
    json: {
      userId: 'u',
      email: 'a@b.example',
      institutionId: 'i',
      permissions: ['publish'],
      createdAt: time,
      emailVerified: true,
      generation: 1,
      passwordHash: 'h',
      resets: [{ channel: 'mail', hash: 'h', expiresAt: time }],
      endedLogins: [{ id: 'l', expiresAt: time }],
    },
  },
  { key: 'familiar-place/u%20127.0.0.1', json: { at: 1 } },
  {
    key: 'signing-key/k',
    json: {
      kid: 'k',
      createdAt: time,
      signsFrom: time,
      privateJwk: privateKey.export({ format: 'jwk' }),
      publicJwk: publicKey.export({ format: 'jwk' }),
    },
  },
  {
    key: 'subscription/de.org.hub.subscription.x',
    json: {
      name: 'de.org.hub.subscription.x',
      topicId: station,
      url: 'https://localhost:1/',
      contact: 'a@b',
      institutionId: 'i',
      serviceAccount: 's',
      ackDeadlineSeconds: 20,
      retryPolicy: null,
      createdAt: time,
      createdBy: 'u',
      from: time,
      livestreams: ['*'],
      kinds: ['playing'],
      types: ['music'],
      ordering: 'livestream',
      maxAge: 'element',
      delay: 1,
      disabledAt: time,
      pausedAt: time,
      pausedBy: 'o',
      isPausedByOwner: true,
      toldBy: 'n',
      secrets: [{ secret: 'whsec_c2VjcmV0' }, { secret: 'whsec_b2xkZXI=', until: time }],
    },
  },
  {
    key: 'lifecycle/push',
    json: {
      track: 'push',
      state: 'deprecated',
      announcedAt: time,
      sunset: time,
      link: 'https://x.example/',
      retiredAt: null,
      brownoutUntil: null,
    },
  },
  { key: 'traffic/x', json: { track: 'push', route: 'GET /topics', day: '2999-01-01', requests: 1 } },
  {
    key: 'last-request/push%20u',
    json: {
      track: 'push',
      route: 'GET /topics',
      userId: 'u',
      email: 'a@b',
      institutionId: 'i',
      lastAt: '2999-01-01T00:00:00.000Z',
    },
  },
  { key: `topic/${station}`, json: { id: station, createdAt: time, institutionId: 'i', folded: 'f' } },
  {
    key: 'session/car',
    json: {
      clientId: 'car',
      clean: false,
      permission: 'p',
      principal,
      createdAt: 1,
      version: 1,
      node: 'n',
      disconnectedAt: 1,
      offlineAt: 1,
      subscriptions: [['radio/#', 1, 0]],
      dropped: 0,
      upTo: 0,
      owed: [[1, 1, 0]],
      lost: 1,
      replay: 1,
    },
  },
  { key: 'clean-session/page-1', json: { node: 'n', permission: 'p', version: 1 } },
  {
    key: 'session/studio',
    json: {
      clientId: 'studio',
      clean: false,
      permission: 'p',
      principal: publisher,
      createdAt: 1,
      version: 1,
      disconnectedAt: 1,
      offlineAt: 1,
      subscriptions: [],
      dropped: 0,
      upTo: 0,
      owed: [],
    },
  },
  { key: 'incoming/car/7', before: '1' },
  { key: 'incoming/car/8', before: '1 0123456789abcdef' },
  {
    key: 'outgoing/car/0000000000000001',
    json: { topic, queue, retain: false, session: 1 },
    behind: '\npayload',
  },
  {
    key: 'progress/n',
    json: {
      version: 1,
      upTo: 0,
      end: { head: 1, ran: 1 },
      unsettled: { car: { upTo: 0, owed: [[1, 1, 0]], lost: 1, replay: 1, createdAt: 1 }, other: null },
    },
  },
  {
    key: 'will/car/x',
    json: {
      node: 'n',
      clientId: 'car',
      principal: publisher,
      address: '192.0.2.7',
      topic: 'inbox/i',
      qos: 0,
      retain: false,
    },
    behind: '\npayload',
  },
  { key: 'time/hub', json: { ran: 1, wall: 1 } },
  {
    key: 'journal/0000000000000001',
    json: {
      topic,
      stream: station,
      institutionId: 'i',
      qos: 1,
      queue,
      at: 1,
      isRepetition: true,
      hasErrors: true,
      retained: { slot: '', time: 1, expires: 9e14 },
      refused: { bytes: 1, kept: 1, title: null, artist: null, refusedServices: [] },
      creator: 'c',
    },
    behind: '\npayload',
  },
  {
    key: 'journal/0000000000000002',
    json: { topic: 'feedback/i', qos: 1, queue: { keep: 'every' }, at: 1, isReport: true, sharedWith: 1 },
    behind: '\n',
  },
  {
    key: `latest/${encodeURIComponent(station)}/0000000000000001`,
    json: { topic, qos: 1, bytes: 100, at: 1, expires: 9e14, isReport: true, hasErrors: true, sharedUpTo: 1 },
  },
  { key: 'every/feedback%2Fi/0000000000000002', json: { qos: 1, bytes: 100, at: 1 } },
  { key: `retained/${topic}\n""`, before: '0000000000000001' },
  { key: `ended/${topic}` },
  { key: `cleared/${topic}`, before: '0000000000000001' },
  { key: 'clock-behind', before: '0000000000000001' },
  {
    key: 'trimming/state',
    json: {
      window: [{ upTo: 1, bytes: 1, at: 1 }],
      floor: 1,
      passed: 1,
      historyFrom: 1,
      historyBytes: 1,
      round: { at: 'every/x', bytes: 1 },
    },
  },
  {
    key: 'work/plugins.x/0000000000000005',
    before: '0000000000000001',
    json: {
      ...item,
      acceptedAt: 1,
      asideUntil: 1,
      begun: 1,
      element: { event: 'e', time: 1, livestreams: {}, item: 'i', until: 1, forMs: 1 },
    },
    behind: '\n',
  },
  {
    key: 'work-shared/0000000000000001',
    json: {
      sequence: 1,
      messageId: 'm',
      details: {},
      enqueuedAt: 1,
      set: 's',
      element: { event: 'e', time: 1, livestreams: {}, item: 'i', until: 1, forMs: 1 },
    },
  },
  { key: 'work-set/s', json: ['x', 'y'] },
  { key: 'work-set-used/s', before: '0000000000000001' },
  { key: 'work-place/x', before: '0000000000000001' },
  {
    key: 'work-dead/plugins.x/0000000000000005',
    before: '0000000000000000',
    json: { ...item, givenUpAt: time, reason: 'too old' },
    behind: '\npayload',
  },
  { key: 'work-seen/12345678/abc', before: '1 id' },
  { key: 'work-seen/12345678/abc/as stored', before: '00000000000000011 id' },
  {
    key: 'attempt/plugins.x/0000000000000001',
    json: { ...attempt, stale: { livestreamId: 'l', count: 1, first: time, last: time } },
  },
  { key: 'push-standing/x', json: { state: 'retrying', since: time, reason: 'r', gone: { at: 1, ms: 1 } } },
  { key: 'feed/checked/x', json: { source: 'x' } },
  { key: 'audit/2026', json: { at: time, who: 'w', action: 'a', target: 't', detail: null } },
  { key: 'health/probe', before: time },
  { key: 'number', before: '9' },
  { key: 'format', before: '2' },
]

export function bytesOf({ before = '', json, behind = '' }: Sample): Buffer {
  return Buffer.from(before + (json === undefined ? '' : JSON.stringify(json)) + behind)
}

/** The record with each of its values, at any depth, replaced by others or left out, one at a time. */
export function* damaged(sample: Sample): Generator<{ what: string; value: Buffer }> {
  const { before = '', json, behind = '' } = sample
  for (const text of ['not json', '', 'null', '[]', '{}', '"x"', '{"half":', '\u0000\u0001', '\n', '-1'])
    yield { what: JSON.stringify(text), value: Buffer.from(text) }
  if (json === undefined) return
  if (before !== '')
    for (const other of ['', 'x'.repeat(16)])
      yield { what: 'another position', value: Buffer.from(other + JSON.stringify(json) + behind) }
  for (const path of pathsIn(json)) {
    for (const by of [undefined, null, true, -1, 0.5, 9e15, '', 'x', '%', [], {}, [null], { x: null }]) {
      const text = JSON.stringify(replaced(json, path, by)) ?? ''
      yield { what: `${path.join('.')} ${JSON.stringify(by)}`, value: Buffer.from(before + text + behind) }
    }
    const endless = JSON.stringify(replaced(json, path, 'ENDLESS')).replace('"ENDLESS"', '1e999')
    yield { what: `${path.join('.')} 1e999`, value: Buffer.from(before + endless + behind) }
  }
}

function* pathsIn(value: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, field] of Object.entries(value)) {
    yield [...path, name]
    yield* pathsIn(field, [...path, name])
  }
}

function replaced(value: unknown, [name, ...rest]: readonly string[], by: unknown): unknown {
  if (name === undefined) return by
  const copy: unknown = Array.isArray(value) ? [...value] : { ...Object(value) }
  const field = rest.length === 0 ? by : replaced(Reflect.get(Object(copy), name), rest, by)
  Reflect.set(Object(copy), name, field)
  return copy
}
