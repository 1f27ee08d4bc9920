import { createHmac, randomBytes } from 'node:crypto'

/*
 * Signatures of pushes as in Standard Webhooks (open.md §6): ready-made libraries verify them with a secret that hub and
 * receiver share.
 */

/** A secret of a subscription. */
export interface SigningSecret {
  /** `whsec_` and base64. */
  secret: string
  /** When it signs no more, ISO 8601: another one has replaced it. Absent: it is the present one. */
  until?: string
}

const prefix = 'whsec_'
/** Standard Webhooks asks for 24 to 64 bytes. */
const secretBytes = 32
/** How long a replaced secret goes on signing, milliseconds. */
const replacedMs = 24 * 60 * 60_000
/** Secrets of a subscription that sign at a time, the present one included. Each costs a signature in each push. */
export const maxSecrets = 5

/** The secrets that sign at this time, the present one first. `now`: milliseconds since the epoch. */
export function signing(secrets: readonly SigningSecret[] | undefined, now: number): SigningSecret[] {
  return (secrets ?? []).filter(({ until }) => until === undefined || Date.parse(until) > now)
}

/**
 * The secrets with a new one before them, which replaces the present one. All that were replaced within a day go on
 * signing: who got no answer and asks again must not cut off the receiver. Undefined: so many sign already (`maxSecrets`).
 */
export function withNewSecret(
  secrets: readonly SigningSecret[] | undefined,
  now: number,
): SigningSecret[] | undefined {
  const before = signing(secrets, now)
  if (before.length >= maxSecrets) return undefined
  const until = new Date(now + replacedMs).toISOString()
  const secret = prefix + randomBytes(secretBytes).toString('base64')
  return [{ secret }, ...before.map((replaced) => ({ until, ...replaced }))]
}

/** The header fields of one attempt. None without a secret. `now`: milliseconds since the epoch. */
export function signatureHeaders(
  { messageId, body }: { messageId: string; body: Buffer },
  secrets: readonly SigningSecret[] | undefined,
  now: number,
): Record<string, string> {
  const current = signing(secrets, now)
  if (current.length === 0) return {}
  // Ids of the hub are decimal. One of an imported store may be any text, which no header could carry.
  const id = messageId.replace(/[^\x21-\x7e]/g, '-')
  const timestamp = String(Math.floor(now / 1000))
  const signatures = current.map(({ secret }) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
