import type { TSchema } from 'typebox'
import { eventKinds, eventSchemas } from '../../event/kind.ts'
import { messageId } from './examples.ts'
import { idOf } from './openapi.ts'

const events: ReadonlySet<TSchema> = new Set(eventKinds.map(({ schema }) => schema))
const renamed = eventSchemas.filter((schema) => events.has(schema) || isClosed(schema))
const names = new Map(renamed.map((schema) => [idOf(schema), receivedName(schema)]))

/**
 * Events as subscribers get them. The hub refuses a field that it does not know, and has given each event an `id`. But a
 * later release may send more fields, so clients made of these schemas must take them (docs/subscribers.md).
 */
export const receivedSchemas: readonly TSchema[] = renamed.map((schema) => {
  const received = JSON.parse(JSON.stringify(schema), (key, value) =>
    key === '$ref' ? (names.get(value) ?? value) : value,
  )
  const $id = receivedName(schema)
  const { required = [], examples } = received
  const open = { ...received, $id, title: $id, additionalProperties: true }
  if (!events.has(schema)) return open
  const withId = examples?.map((example: object) => ({ ...example, id: messageId }))
  return { ...open, required: [...required, 'id'], ...(withId && { examples: withId }) }
})

/** What the schema of an event is called where subscribers get it. */
export function receivedName(schema: TSchema): string {
  return `Received${idOf(schema)}`
}

function isClosed(schema: TSchema): boolean {
  return 'additionalProperties' in schema && schema.additionalProperties === false
}
