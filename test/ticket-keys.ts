import { randomBytes } from 'node:crypto'
import type { TicketKeys } from '../certs/ticket-keys.ts'

/** A key of TLS tickets that stays. */
export function lastingTicketKey(): TicketKeys {
  const key = randomBytes(48)
  return { current: () => key, onChange: () => undefined }
}
