import type { Static, TObject, TSchema } from 'typebox'
import type { Carrier } from '../carriers/carrier.ts'

/**
 * What the hub can pass titles on to (open.md §5). It is pure: it says what is to be sent, and what an answer means.
 * `showing/` sends it. One folder and one line in `outputs.ts` each.
 */
export type Output = OutputRow<TObject, object>

interface OutputRow<Schema extends TObject, Settings = Static<Schema>> {
  /** What `driver` in the configuration says. */
  readonly name: string
  /** What it is for, one sentence of Markdown. */
  readonly about: string
  /** What `livestreams` names: the mount, the station. Completes "expected …". */
  readonly there: TSchema
  /** What it writes to, for people. Two livestreams, also of two outputs, would overwrite each other at the same place. */
  place?(settings: Settings, there: string): string
  /** The settings beside those that all outputs have. */
  readonly settings: Schema
  readonly example: { readonly settings: Settings; readonly there: string }
  /** How `{text}` is written. */
  readonly carrier: Carrier
  /** The other side refuses an element without a text. */
  readonly needsText?: true
  /** What is wrong with settings that fit the schema. `names`: what `livestreams` names. */
  problems?(settings: Settings, names: readonly string[]): SettingProblem[]
  /** What brings the other side to show an element. Places of the text are characters. */
  request(element: ShownElement, settings: Settings, there: string): Request
  /** What an answer over HTTP means. Without it, 2xx acknowledges. */
  judge?(answer: ServerAnswer): Judgement
  /**
   * How to see that the other side has forgotten the title. Asked every 15 s. The title is sent again when there is none, or
   * when `connection` is another text than at the last look.
   */
  readonly memory?: {
    request(settings: Settings, there: string): HttpRequest
    /** Undefined: the answer does not say. */
    read(answer: ServerAnswer): { isEmpty: boolean; connection: string } | undefined
  }
  /** What becomes of answers, and what surprises of real software: for the docs, Markdown. */
  readonly answers: readonly (readonly [answer: string, means: string])[]
  readonly surprises: readonly (readonly [surprise: string, therefore: string])[]
}

/** The row of an output. Its functions get settings only after the schema has checked them. */
export function output<Schema extends TObject>(row: OutputRow<Schema>): Output {
  return row as unknown as Output
}

export interface SettingProblem {
  /** The setting, such as `url`. */
  readonly field: string
  /** What was expected instead. */
  readonly expected: string
}

/** An element that a livestream shows, or the idle text of the station behind it. */
export interface ShownElement {
  readonly livestreamId: string
  readonly artist: string | null
  readonly title: string
  /** The type of the element, such as `music`; `idle` for the idle text. */
  readonly type: string
  /** When it began, ISO 8601. */
  readonly start: string
  /** Seconds. Null: nobody knows. */
  readonly length: number | null
  /** Changes between 0 and 1 with each element of the livestream. */
  readonly toggle: 0 | 1
}

export type Request = HttpRequest | FileContent | TcpLines

export interface HttpRequest {
  readonly method: string
  /** http or https, without user and password. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The same as operators may see it. Headers are never shown. */
  readonly shown: { readonly url: string; readonly body?: string }
  /** What operators may not see either where an answer repeats it, beside the headers. */
  readonly secrets: readonly string[]
}

/** A file that is replaced as a whole. */
export interface FileContent {
  readonly file: string
  readonly content: string
}

/** Bytes for a server over TCP, which closes or not. */
export interface TcpLines {
  readonly host: string
  readonly port: number
  readonly bytes: Buffer
  /** The same as operators may see it. */
  readonly text: string
}

export interface ServerAnswer {
  readonly status: number
  /** The beginning of the body. */
  readonly text: string
}

export interface Judgement {
  /** `refused`: the other side has answered, and does not want it. Either is tried again. */
  readonly result: 'acknowledged' | 'refused' | 'failed'
  /** Null: acknowledged. */
  readonly reason: string | null
}

/** 2xx acknowledges, other answers do not. */
export function judgeByStatus({ status }: ServerAnswer): Judgement {
  if (status >= 200 && status < 300) return { result: 'acknowledged', reason: null }
  const isFailure = status === 408 || status === 429 || status >= 500
  const reason =
    status >= 300 && status < 400 ? `answered ${status}: the hub follows no redirects` : `answered ${status}`
  return { result: isFailure ? 'failed' : 'refused', reason }
}
