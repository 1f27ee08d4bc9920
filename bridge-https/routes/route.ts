import type { TSchema } from 'typebox'
import { maxPayloadBytes } from '../../validator/decide.ts'
import type { Answer } from '../answer.ts'
import type { BodySchemas } from '../body.ts'
import type { ApiTrack } from '../lifecycle/track.ts'
import type { Permission, User } from '../users/user.ts'
import type { KnownUser } from '../users/users.ts'

/** The parts of a request that routes need. */
export interface Call {
  /** Decoded parameters of the path. */
  params: Record<string, string>
  /** Parameters of the query. The value of a parameter that is given twice is a list. */
  query: Record<string, unknown>
  /** The value of a header field. Node has joined or dropped repeated fields. */
  header: (name: string) => string | undefined
  /** The parsed and checked body. With `rawBody`: the received bytes, unchecked. */
  body: unknown
  /** Address of the client, even if a load balancer is in between. */
  address: string
  /** Arrival of the last byte, milliseconds: `at` by the wall clock, `started` by `performance.now()`. */
  at: number
  started: number
  /** What the asker may read of the radio tree, as topic filters: those of a reader, else all of it. */
  filters: readonly string[]
  /** Id of the user, or user name of the reader. Undefined for strangers, and on routes without a user. */
  holder: string | undefined
  /** When the token ends, milliseconds since the epoch. Undefined for readers, and without a token. */
  expiresAt: number | undefined
  /**
   * Whether the user or reader may still ask; true for everybody else. Ask after each wait: the user may have been
   * removed, the credential of the reader revoked.
   */
  isStillUser(): Promise<boolean>
  /** Counts the request as a use of the route (design.md §9). A request with a valid token counts without this call. */
  count(user?: User): void
}

/** An answer of a route, as the API description shows it. */
export interface Described {
  description: string
  /** Schema of the answer's body. Without `mediaType` the body is JSON. */
  schema?: TSchema
  mediaType?: string
}

/** A parameter of the query: one of some texts, a whole number, or any text, which may repeat in a list. */
export type QueryParameter = { description: string } & (
  | { enum: readonly string[] }
  | { minimum: number; maximum: number }
  | { isList: boolean }
)

interface RouteBase {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS'
  /** As the description writes it: `/topics/{topicName}`. */
  path: string
  id: string
  summary: string
  description?: string
  tag: string
  /**
   * The effect of an operators' command: `none`, `change` or `loss`. `x-effect` in the description lets programs ask a
   * person before a loss.
   */
  effect?: string
  /** The route retires together with all routes of this API track. */
  track?: ApiTrack
  /** A brown-out of the track does not switch this route off. */
  staysOnInBrownout?: boolean
  /** Pages of any origin may read every answer of the route (`bridge-https/cross-origin.ts`). It sees no cookies. */
  crossOrigin?: boolean
  /** The answer lasts as long as its connection. Where there is no room, `EventSource` must come back later. */
  isStream?: boolean
  body?: BodySchemas
  /** A request without a body counts as one with an empty object. */
  mayLackBody?: boolean
  /** Largest body in bytes, if 400 kB are not enough. */
  bodyBytes?: number
  /** The handler gets unchecked bytes, and checks them itself. */
  rawBody?: boolean
  params?: Record<string, { description: string; enum?: readonly string[] }>
  /** Parameters of the query, all optional. A route that declares some refuses all others. */
  query?: Record<string, QueryParameter>
  /**
   * Answers by status: successes, and errors that do not follow from the other fields. A text describes a refusal, whose
   * body follows from its status (`errorStatuses`).
   */
  answers: Record<number, Described | string>
}

/** A route without a user: open to everybody, or to tokens that `admits` accepts. */
interface OpenRoute extends RouteBase {
  permission?: undefined
  /** Whether a bearer token that belongs to no user opens the route. Absent: the route needs no token. */
  admits?: (bearer: string) => Promise<boolean>
  strangers?: undefined
  readers?: undefined
  handle(call: Call): Promise<Answer> | Answer
}

/** A route for users with a permission. */
export type GuardedRoute = UserRoute &
  ({ permission: Permission; readers?: undefined } | { permission: 'subscribe'; readers?: boolean })

interface UserRoute extends RouteBase {
  /**
   * Readers are welcome: the route also answers HTTP Basic with a credential of role `reader`. What it tells them is
   * limited to `Call.filters`.
   */
  readers?: boolean | undefined
  /** Strangers are welcome: the route also answers requests without a token. */
  strangers?: boolean
  handle(call: Call, user: KnownUser): Promise<Answer> | Answer
}

/** One route of the HTTPS API. The hub serves, describes and retires it by this object. */
export type Route = OpenRoute | GuardedRoute

/** Largest body without a token, bytes. Bodies of thousands of strangers may be in memory at once. */
const openBodyBytes = 16 * 1024

/** Largest body of a route, bytes: usually 400 kB with a token (service.md §8). */
export function maxBodyBytes(route: Route): number {
  return needsToken(route) ? (route.bodyBytes ?? maxPayloadBytes) : openBodyBytes
}

/** Whether a route answers only with a bearer token, or to a reader. */
export function needsToken(route: Route): boolean {
  return !route.strangers && (route.permission !== undefined || route.admits !== undefined)
}

/** The name of a route in counters and metrics. */
export function labelOf({ method, path }: Route): string {
  return `${method} ${path}`
}
