import type { TSchema } from 'typebox'
import { Type } from '../../event/type.ts'

/*
 * Schemas of the settings of outputs. An error message quotes the description of a schema after "expected".
 */

/** A text without control characters: it may end up in a request. */
export function line(description: string, maxLength = 2_000) {
  return Type.String({ minLength: 1, maxLength, pattern: '^[^\\p{Cc}]+$', description })
}

/** The same, but nobody is shown its value. */
export function secret<Schema extends TSchema>(schema: Schema): Schema {
  return { ...schema, writeOnly: true }
}

/** The URL of a server, to which paths are added. */
export function serverUrl() {
  return Type.String({
    format: 'server-url',
    maxLength: 2_000,
    description: 'an http or https URL without user, query and fragment',
  })
}

export function port() {
  return Type.Integer({ minimum: 1, maximum: 65_535, description: 'a port, from 1 to 65535' })
}

export function host() {
  return Type.String({
    // Colons only as in addresses of IPv6: `10.0.0.9:7005` is none.
    pattern: '^([A-Za-z0-9._-]{1,253}|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*)$',
    description: 'a host name or an address, without port',
  })
}

/** A base URL with a path behind it. */
export function joined(base: string, path: string): string {
  return base.replace(/\/$/, '') + path
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}
