import type { Static } from 'typebox'
import { Type } from '../../../event/type.ts'
import type { ArtistAndTitle, Carrier } from '../../carriers/carrier.ts'
import { writeElement } from '../../carriers/carrier.ts'
import { output, type SettingProblem } from '../output.ts'
import { line, secret } from '../setting-schemas.ts'
import {
  fill,
  filledJson,
  filledPath,
  hasPlaceholder,
  knownPlaceholders,
  percentEncoded,
  unknownIn,
  unknownInUrl,
  type Values,
  valuesOf,
} from './template.ts'

/** Longest text of a placeholder, characters. */
const most = 500

/** A request that the operator writes. The text is as published, cut at 500 characters. */
const plain: Carrier = {
  name: 'url-template',
  limit: `${most} characters`,
  write: (element) => writeElement(element, { show: (text) => text, sizeOf: (text) => text.length, most }),
}

/** Scheme, host and port, the path, and the query. */
const urlParts = /^(https?:\/\/[^/?#\\@]+)([^?#\\]*)(\?[^#]*)?$/

const settings = Type.Object({
  url: line('an http or https URL, with placeholders in path and query only'),
  method: Type.Optional(
    Type.Unsafe<'GET' | 'POST' | 'PUT' | 'PATCH'>({
      type: 'string',
      enum: ['GET', 'POST', 'PUT', 'PATCH'],
      description: 'one of GET, POST, PUT, PATCH',
    }),
  ),
  headers: Type.Optional(
    secret(
      Type.Record(Type.String(), secret(line('a value of one line, without placeholders')), {
        description: 'an object of header names and values, without placeholders',
      }),
    ),
  ),
  body: Type.Optional(
    secret(Type.String({ maxLength: 20_000, description: 'JSON, or name=value pairs, with placeholders' })),
  ),
})
type Settings = Static<typeof settings>

/** RFC 9110 §5.6.2 */
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/

/** These belong to the connection. */
const ownHeaders =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/i

/** A request of the operator's own. */
export const urlTemplate = output({
  name: 'url-template',
  about: 'a URL of yours, with placeholders: for directories, signage, home-made scripts',
  there: line('a text, which `{name}` stands for', 200),
  settings,
  example: {
    settings: {
      url: 'https://directory.example/stations/{name}/now?title={title}&artist={artist}',
      headers: { authorization: 'Bearer secret' },
    },
    there: 'station-1',
  },
  carrier: plain,
  problems,

  request(element, { url, method = 'GET', headers = {}, body }, there) {
    const [, origin = '', path = '', query = ''] = urlParts.exec(url) ?? []
    const limited = limitedElement(element)
    const values = valuesOf({ ...element, ...limited }, plain.write(element).text, there)
    const filled = filledBody(body, values)
    return {
      method,
      url: origin + filledPath(path, values) + fill(query, values, percentEncoded),
      headers: { ...(filled && { 'content-type': filled.type }), ...headers },
      ...(filled && { body: filled.text }),
      shown: {
        url: origin + filledPath(path, values) + masked(query, values),
        ...(filled && { body: filled.shown }),
      },
      secrets: [...pairValues(query), ...(filled?.texts ?? [])].filter((value) => !hasPlaceholder(value)),
    }
  },

  answers: [
    ['200 to 299', 'acknowledged'],
    ['408, 429, 500 and above, no answer in 20 s', 'failed: tried again'],
    ['others, also redirects', 'refused: tried again'],
  ],
  surprises: [
    [
      'Servers resolve `..` in a path, also where it came encoded',
      'a title of dots alone becomes `__` in a path',
    ],
    ["`encodeURIComponent` leaves `'`, `(`, `)`, `*`, `!` as they are", 'they are encoded as well'],
  ],
})

function limitedElement({ artist, title }: ArtistAndTitle): ArtistAndTitle {
  const one = (text: string) => plain.write({ artist: null, title: text }).text
  return { artist: artist === null ? null : one(artist), title: one(title) }
}

function problems({ url, headers = {}, body, method = 'GET' }: Settings): SettingProblem[] {
  const found: SettingProblem[] = []
  const [, origin] = urlParts.exec(url) ?? []
  const isServer =
    origin !== undefined &&
    URL.canParse(origin) &&
    new URL(origin).hostname.length <= 253 &&
    !/[{}]/.test(origin)
  if (!isServer)
    found.push({
      field: 'url',
      expected: 'an http or https URL without user and fragment, with placeholders in path and query only',
    })
  if (!/^[\x21-\x7e]+$/.test(url))
    found.push({ field: 'url', expected: 'spaces, and characters that are not ASCII, percent-encoded' })
  for (const [field, names] of [
    ['url', unknownInUrl(url)],
    ['body', unknownIn(body ?? '')],
  ] as const) {
    for (const name of names)
      found.push({ field, expected: `placeholders of these: ${knownPlaceholders}; not ${name}` })
  }
  for (const name of Object.keys(headers).filter((name) => !headerName.test(name)))
    found.push({
      field: 'headers',
      expected: `names of letters, digits and dashes, not ${JSON.stringify(name)}`,
    })
  if (Object.keys(headers).some((name) => ownHeaders.test(name)))
    found.push({ field: 'headers', expected: 'no header of the connection, such as Host or Content-Length' })
  if (Object.values(headers).some((value) => hasPlaceholder(value)))
    found.push({ field: 'headers', expected: 'values without placeholders' })
  if (Object.values(headers).some((value) => /[^\t\x20-\x7e\x80-\xff]/.test(value)))
    found.push({ field: 'headers', expected: 'values of Latin-1 characters' })
  if (body !== undefined && method === 'GET')
    found.push({ field: 'body', expected: 'another method than GET' })
  if (body !== undefined && /^\s*[[{]/.test(body) && jsonOf(body) === undefined)
    found.push({ field: 'body', expected: 'JSON with placeholders inside of texts only' })
  return found
}

/** The body with its values: JSON where the template is JSON, else name=value pairs. */
function filledBody(body: string | undefined, values: Values) {
  if (body === undefined) return undefined
  const json = jsonOf(body)
  if (json === undefined) {
    const text = fill(body, values, percentEncoded)
    return {
      type: 'application/x-www-form-urlencoded',
      text,
      shown: masked(body, values),
      texts: pairValues(body),
    }
  }
  const filled = filledJson(json, values)
  return {
    type: 'application/json',
    text: JSON.stringify(filled),
    shown: JSON.stringify(maskedJson(json, values)),
    texts: textsIn(json),
  }
}

/** An object or a list. Undefined: it is no JSON. */
function jsonOf(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The values of name=value pairs, and values alone. */
const pairValue = /(?<==)[^&]*|(?<=^\??|&)[^?&=]+(?=&|$)/g

/** Only values with placeholders are shown: others may be keys. */
function masked(pairs: string, values: Values): string {
  return pairs.replace(pairValue, (value) =>
    hasPlaceholder(value) ? fill(value, values, percentEncoded) : '***',
  )
}

function pairValues(pairs: string): string[] {
  return pairs.match(pairValue) ?? []
}

/** Texts and numbers of a JSON value: each may be a key. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)]
  return Object.values(Object(value)).flatMap(textsIn)
}

function maskedJson(value: unknown, values: Values): unknown {
  if (typeof value === 'number') return '***'
  if (typeof value === 'string') return hasPlaceholder(value) ? filledJson(value, values) : '***'
  if (Array.isArray(value)) return value.map((item) => maskedJson(item, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskedJson(inner, values)]))
}
