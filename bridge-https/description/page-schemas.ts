import type { Static } from 'typebox'
import { Type } from '../../event/type.ts'
import * as examples from './examples.ts'
import { AskResetBody, LogInAnswer, UseResetBody } from './schemas.ts'

/* Schemas for pages (design.md §9). */

const { token, expiresIn, expires, user, trace } = LogInAnswer.properties

export const Session = Type.Object(
  {
    token,
    expiresIn,
    expires,
    user: Type.Object({ ...user.properties, permissions: Type.Array(Type.String()) }),
    trace,
  },
  { $id: 'Session', title: 'Session', examples: [examples.session] },
)

export type FirstOperatorBody = Static<typeof FirstOperatorBody>
export const FirstOperatorBody = Type.Object(
  {
    token: Type.String({ maxLength: 200, description: 'the token of the link that the node printed' }),
    email: AskResetBody.properties.email,
    password: UseResetBody.properties.password,
  },
  { title: 'FirstOperatorRequest', additionalProperties: false, examples: [examples.firstOperator] },
)

export type MqttCredentialBody = Static<typeof MqttCredentialBody>
export const MqttCredentialBody = Type.Object(
  {
    filters: Type.Optional(
      Type.Array(Type.String({ maxLength: 500, description: 'a filter within radio/#' }), {
        minItems: 1,
        maxItems: 20,
        description: '1 to 20 filters; without it radio/#',
      }),
    ),
  },
  { title: 'MqttCredentialRequest', additionalProperties: false, examples: [examples.mqttCredentialBody] },
)

export const MqttCredential = Type.Object(
  {
    username: Type.String(),
    password: Type.String(),
    url: Type.String({ description: 'Where to connect: MQTT over WebSocket, sub-protocol `mqtt`' }),
    filters: Type.Array(Type.String(), { description: 'What it may subscribe to' }),
    expiresAt: Type.String({
      format: 'date-time',
      description: 'From then on it is refused, and its connections are closed. Ask for another one before',
    }),
  },
  { $id: 'MqttCredential', title: 'MqttCredential', examples: [examples.mqttCredential] },
)

export const SilentLivestreams = Type.Object(
  {
    livestreams: Type.Array(
      Type.Object({
        id: Type.String(),
        since: Type.String({ format: 'date-time', description: 'when its last event was accepted' }),
      }),
    ),
    trace,
  },
  { title: 'SilentLivestreams', examples: [examples.silentLivestreams] },
)

export const Livestreams = Type.Object(
  {
    institutions: Type.Array(
      Type.Object({ id: Type.String(), title: Type.String(), acronym: Type.String() }),
    ),
    livestreams: Type.Array(
      Type.Object({ id: Type.String(), title: Type.String(), institutionId: Type.String() }),
    ),
    trace,
  },
  { $id: 'Livestreams', title: 'Livestreams', examples: [examples.livestreams] },
)
