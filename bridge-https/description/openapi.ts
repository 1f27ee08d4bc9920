import type { TSchema } from 'typebox'
import { instantPattern } from '../../event/format.ts'
import { eventSchemas } from '../../event/kind.ts'
import { errorStatuses, type StatusRow } from '../answer.ts'
import type { ApiTrack, TrackState } from '../lifecycle/track.ts'
import { type Described, maxBodyBytes, needsToken, type QueryParameter, type Route } from '../routes/route.ts'
import * as historySchemas from './history-schemas.ts'
import * as onAirSchemas from './on-air-schemas.ts'
import * as pageSchemas from './page-schemas.ts'
import * as published from './published-event.ts'
import * as bodySchemas from './schemas.ts'

const bearer = 'bearer'
const reader = 'reader'

/** What the schemas of the HTTPS API export, except those of events. */
export const apiSchemas = [bodySchemas, pageSchemas, onAirSchemas, historySchemas, published].flatMap(
  (file) => Object.values<object>(file),
)

/** Describes every route that has not retired, from the table that the hub serves (service.md §9). */
export function describeApi(
  routes: readonly Route[],
  about: { version: string; publicUrl: string; stateOf: (track: ApiTrack) => TrackState },
): object {
  const { version, publicUrl, stateOf } = about
  const live = routes.filter(({ track }) => track === undefined || stateOf(track) !== 'gone')
  const paths: Record<string, Record<string, object>> = {}
  for (const route of live) {
    const isDeprecated = route.track !== undefined && stateOf(route.track) === 'deprecated'
    const item = paths[route.path] ?? {}
    paths[route.path] = { ...item, [route.method.toLowerCase()]: operation(route, isDeprecated) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Now-playing hub, HTTPS API',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Publish now-playing events and subscribe webhooks to them. MQTT is described in /asyncapi.json, and is where this API leads: its routes retire once nobody uses them, with notice in the headers Deprecation, Sunset and Link.',
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set(live.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemasFor(paths),
      securitySchemes: {
        [bearer]: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'The token of a log-in',
        },
        [reader]: {
          type: 'http',
          scheme: 'basic',
          description: 'User name and password of a credential of role `reader`',
        },
      },
    },
  }
}

/** Where a reference to the schema `name` leads. */
type RefTo = (name: string) => string

const toComponent: RefTo = (name) => `#/components/schemas/${name}`

/** Turns schemas into components of the API description, named by `$id`. Leaves out schemas without `$id`. */
export function components(schemas: readonly TSchema[], refTo = toComponent): Record<string, object> {
  return Object.fromEntries(
    schemas.flatMap((schema) => {
      const name = idOf(schema)
      return name === undefined ? [] : [[name, Object(portable({ ...schema, $id: undefined }, refTo))]]
    }),
  )
}

/**
 * A schema that other tools understand. `refTo` makes the references, and a pattern replaces the hub's own format
 * `instant`.
 */
export function portable(schema: unknown, refTo = toComponent): unknown {
  if (Array.isArray(schema)) return schema.map((one) => portable(one, refTo))
  if (typeof schema !== 'object' || schema === null) return schema
  const name = idOf(schema)
  if (name !== undefined) return { $ref: refTo(name) }
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
      if (value === undefined) return []
      if (key === '$ref') return [[key, refTo(String(value))]]
      if (key === 'format' && value === 'instant') return [['pattern', instantPattern]]
      return [[key, key === 'examples' || key === 'enum' ? value : portable(value, refTo)]]
    }),
  )
}

function operation(route: Route, isDeprecated: boolean): object {
  const { id, summary, description, tag, effect, params = {}, query = {}, body } = route
  const parameters = [
    ...Object.entries(params).map((one) => parameter('path', one)),
    ...Object.entries(query).map((one) => parameter('query', one)),
  ]
  const notes = [description, route.permission && `Needs the permission \`${route.permission}\`.`]
  return {
    operationId: id,
    summary: capital(summary),
    description: notes.filter(Boolean).join('\n\n') || undefined,
    tags: [tag],
    deprecated: isDeprecated || undefined,
    'x-effect': effect,
    security: securityOf(route),
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: body && {
      required: !route.mayLackBody,
      content: {
        'application/json': { schema: body.length === 1 ? portable(body[0]) : { anyOf: portable(body) } },
      },
    },
    responses: responses(route, isDeprecated),
  }
}

/** `{}` in the list means that the route also answers without a token. */
function securityOf(route: Route): object[] {
  const ofReaders = route.readers ? [{ [reader]: [] }] : []
  if (route.strangers) return [{ [bearer]: [] }, ...ofReaders, {}]
  return needsToken(route) ? [{ [bearer]: [] }, ...ofReaders] : []
}

function parameter(
  place: 'path' | 'query',
  [name, { description, ...value }]: [
    string,
    { description: string; enum?: readonly string[] } | QueryParameter,
  ],
) {
  const about = { name, in: place, required: place === 'path', description: capital(description) }
  if ('isList' in value) {
    const text = { type: 'string' }
    return { ...about, schema: value.isList ? { type: 'array', items: text } : text }
  }
  return { ...about, schema: { type: 'minimum' in value ? 'integer' : 'string', ...value } }
}

/** A route's own answers, and those that follow from its permission, body and track. */
function responses(route: Route, isDeprecated: boolean): Record<string, object> {
  const answers: Record<string, Described | string> = {
    ...(route.method !== 'GET' && { 400: errorStatuses[400].message }),
    ...(needsToken(route) && {
      401: 'The header Authorization with a bearer token is missing',
    }),
    ...((needsToken(route) || route.strangers) && {
      403: route.readers
        ? 'The token or the reader is not valid, or the permission is missing'
        : 'The token is not valid, or the permission is missing',
    }),
    ...((route.readers || route.strangers) && {
      429: 'Too many questions or failed log-ins from this address',
    }),
    ...(route.body && {
      408: 'The body took too long',
      413: `The body is larger than ${maxBodyBytes(route) / 1024} kB`,
      503: 'Too many bodies at once',
    }),
    ...(route.track && {
      410: 'Retired',
      503: 'Too much at once, or switched off for a while as notice of retirement',
    }),
    431: errorStatuses[431].message,
    500: errorStatuses[500].message,
    ...route.answers,
  }
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const row = statusRows.get(status)
      const isRefusal = typeof answer === 'string'
      const {
        description,
        schema,
        mediaType = 'application/json',
      } = isRefusal
        ? {
            description: answer,
            schema: row?.listsErrors ? bodySchemas.ErrorWithItems : bodySchemas.PlainError,
          }
        : answer
      const headers = {
        ...(isDeprecated && noticeHeaders),
        ...(isRefusal && row?.mayRetry && retryHeader),
        ...(status === '401' && challengeHeader),
      }
      return [
        status,
        {
          description,
          headers: Object.keys(headers).length > 0 ? headers : undefined,
          content: { [mediaType]: schema ? { schema: portable(schema) } : {} },
        },
      ]
    }),
  )
}

const statusRows: ReadonlyMap<string, StatusRow> = new Map(Object.entries(errorStatuses))

const noticeHeaders = {
  Deprecation: { description: 'Since when, RFC 9745', schema: { type: 'string' } },
  Sunset: { description: 'Until when at least, RFC 8594', schema: { type: 'string' } },
  Link: { description: 'What to do', schema: { type: 'string' } },
}

const retryHeader = {
  'Retry-After': { description: 'When to come back, seconds', schema: { type: 'integer' } },
}

const challengeHeader = {
  'WWW-Authenticate': { description: 'The scheme of the token', schema: { type: 'string' } },
}

/** The schemas of the HTTPS API, and every event schema that a reference leads to. */
function schemasFor(paths: object): Record<string, unknown> {
  const ofDoor = components(apiSchemas)
  const ofEvents = components(eventSchemas)
  const named = new Set<string>()
  const look = (part: unknown) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (named.has(name) || !Object.hasOwn(ofEvents, name)) continue
      named.add(name)
      look(ofEvents[name])
    }
  }
  look([paths, ofDoor])
  return { ...Object.fromEntries(Object.entries(ofEvents).filter(([name]) => named.has(name))), ...ofDoor }
}

/** The name of a schema that others refer to. */
export function idOf(schema: object): string | undefined {
  return '$id' in schema && typeof schema.$id === 'string' ? schema.$id : undefined
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
