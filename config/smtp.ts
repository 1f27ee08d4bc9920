import { resolve } from 'node:path'
import type { Static } from 'typebox'
import { Type } from '../event/type.ts'
import { flag, secret, text, whole } from './value-schemas.ts'

/** The mail server for password links (design.md §9). */
export type SmtpConfig = Static<typeof smtp> & { port: number; secure: boolean }

export const smtp = Type.Object(
  {
    host: text(),
    port: Type.Optional(whole(1, 65_535)),
    secure: Type.Optional(flag()),
    user: Type.Optional(text()),
    password: Type.Optional(secret(text())),
    from: text(),
    ca: Type.Optional(text()),
  },
  { additionalProperties: false, description: 'an object with host and from' },
)

/** Adds the port of mail servers, and makes the path of the CA absolute. */
export function completeSmtp(set: Static<typeof smtp>, cwd: string): SmtpConfig {
  return {
    ...set,
    ...(set.ca !== undefined && { ca: resolve(cwd, set.ca) }),
    secure: set.secure ?? false,
    port: set.port ?? (set.secure ? 465 : 587),
  }
}
