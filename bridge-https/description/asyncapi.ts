import { eventClasses, eventKinds, eventSchemas } from '../../event/kind.ts'
import { checkTopic, feedbackTopic, inboxTopic, radioTopic } from '../../event/topic.ts'
import { websocketPath } from '../request.ts'
import { Feedback } from './history-schemas.ts'
import { capital, components, portable } from './openapi.ts'
import { receivedName, receivedSchemas } from './received-schemas.ts'

/** Describes the MQTT side as AsyncAPI 3.0, with permissions by role and channel (service.md §4.2). */
export function describeMqtt(about: { version: string; publicUrl: string; mqttPort: number }): object {
  const { version, publicUrl, mqttPort } = about
  const { hostname, host, pathname } = new URL(`${publicUrl}${websocketPath}`)
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Now-playing hub, MQTT',
      version,
      license: { name: 'MIT' },
      description:
        'MQTT 3.1.1 over TLS, QoS 0 to 2. Described is the hub: it receives what publishers publish.',
    },
    defaultContentType: 'application/json',
    servers: {
      mqtt: server(`${hostname}:${mqttPort}`, 'secure-mqtt'),
      websocket: { ...server(host, 'wss'), pathname },
    },
    channels,
    operations,
    components: {
      messages,
      schemas: components([...eventSchemas, ...receivedSchemas, Feedback]),
      securitySchemes: {
        credential: { type: 'userPassword', description: 'A credential made by the operator' },
      },
    },
  }

  function server(host: string, protocol: string) {
    return {
      host,
      protocol,
      protocolVersion: '3.1.1',
      security: [{ $ref: '#/components/securitySchemes/credential' }],
    }
  }
}

const institution = { description: 'URN of an institution, `urn:org:institution:<id>`' }
const livestream = { description: 'URN of a livestream, `urn:org:permanent-livestream:<id>`' }

/** The event kinds, each with the names of its AsyncAPI messages, such as `trackPlaying` and `receivedTrackPlaying`. */
const kinds = eventKinds.map((kind) => {
  const message = kind.suffix.replace(/\/(.)/g, (_, letter: string) => letter.toUpperCase())
  return { ...kind, message, received: `received${capital(message)}` }
})

const messages = Object.fromEntries([
  ...kinds.flatMap(({ name, message, received, schema }) => [
    [message, { name, title: name, payload: portable(schema) }],
    [received, { name, title: name, payload: portable({ $ref: receivedName(schema) }) }],
  ]),
  ['feedback', { name: 'feedback', title: 'What became of an event', payload: portable(Feedback) }],
])

const acl = {
  inbox: [
    { role: 'publisher', action: 'publish', condition: 'The institution is one of the credential' },
    { role: 'subscriber', action: 'none' },
  ],
  inboxOfClass: [
    {
      role: 'publisher',
      action: 'publish',
      condition: 'The institution and the class are among those of the credential',
    },
    { role: 'subscriber', action: 'none' },
  ],
  feedback: [
    {
      role: 'publisher',
      action: 'subscribe',
      condition: 'The institution is one of the credential; no wildcards',
    },
    { role: 'subscriber', action: 'none' },
  ],
  radio: [
    { role: 'publisher', action: 'none' },
    {
      role: 'subscriber',
      action: 'subscribe',
      condition: 'A filter of the credential covers everything the requested filter can match',
    },
  ],
}

const channels = {
  inbox: {
    address: inboxTopic('{institutionId}'),
    description: 'Events of an institution, of any kind. Acknowledged once decided and stored.',
    parameters: { institutionId: institution },
    messages: refs(kinds.map(({ message }) => message)),
    'x-acl': acl.inbox,
  },
  inboxOfClass: {
    address: `${inboxTopic('{institutionId}')}/{class}`,
    description: 'Events of one class',
    parameters: {
      institutionId: institution,
      class: { description: 'Class of the events', enum: [...eventClasses] },
    },
    messages: refs(kinds.map(({ message }) => message)),
    'x-acl': acl.inboxOfClass,
  },
  check: {
    address: checkTopic('{institutionId}'),
    description:
      'Dry run: the hub says on the feedback topic what would become of the event, and does nothing else.',
    parameters: { institutionId: institution },
    messages: refs(kinds.map(({ message }) => message)),
    'x-acl': acl.inbox,
  },
  feedback: {
    address: feedbackTopic('{institutionId}'),
    description: 'What became of each event. Not retained.',
    parameters: { institutionId: institution },
    messages: refs(['feedback']),
    'x-acl': acl.feedback,
  },
  ...Object.fromEntries(
    kinds.map((kind) => [
      kind.message,
      {
        address: radioTopic('{livestreamId}', kind),
        description: 'Valid events of a livestream. The newest is retained.',
        parameters: { livestreamId: livestream },
        messages: refs([kind.received]),
        'x-acl': acl.radio,
      },
    ]),
  ),
}

const operations = Object.fromEntries([
  ...['inbox', 'inboxOfClass', 'check'].map((channel) => [
    `receive${capital(channel)}`,
    { action: 'receive', channel: { $ref: `#/channels/${channel}` }, summary: 'A publisher sends an event' },
  ]),
  [
    'sendFeedback',
    {
      action: 'send',
      channel: { $ref: '#/channels/feedback' },
      summary: 'The hub says what became of an event',
      bindings: { mqtt: { qos: 1, retain: false } },
    },
  ],
  ...kinds.map(({ message, name }) => [
    `send${capital(message)}`,
    {
      action: 'send',
      channel: { $ref: `#/channels/${message}` },
      summary: `The hub distributes ${name}`,
      bindings: { mqtt: { qos: 1, retain: true } },
    },
  ]),
])

function refs(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }]))
}
