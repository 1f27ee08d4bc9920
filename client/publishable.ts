import { ClientError } from './errors.ts'
import type { HubEvent } from './events.ts'
import { isRecord } from './kind.ts'
import { EventRefused } from './refusal.ts'

/** An event in the form of the schemas, or in one that only the hub knows. */
export type Publishable = HubEvent | Record<string, unknown>

/** Payload limit of the hub, bytes. Over MQTT it closes the connection at what is much larger. */
const maxPayload = 409_600

/** The payload of an event. Throws `ClientError` or, where the hub would, `EventRefused`. */
export function writeEvent(event: Publishable): string {
  if (!isRecord(event)) throw new ClientError('event.unreadable')
  let payload: string | undefined
  try {
    payload = JSON.stringify(event)
  } catch (error) {
    throw new ClientError('event.unreadable', undefined, { cause: error })
  }
  if (payload === undefined) throw new ClientError('event.unreadable')
  // A character has at most three bytes.
  if (payload.length * 3 > maxPayload && new TextEncoder().encode(payload).length > maxPayload) {
    const message = `must have at most ${maxPayload} bytes`
    throw new EventRefused('invalid', [{ path: '.', message, errorCode: 'payload.size' }])
  }
  return payload
}
