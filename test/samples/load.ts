import { projectFile } from '../root.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A sample event, ready to be sent over MQTT or HTTPS. */
export interface Sample {
  file: string
  why: string
  /** `both`: MQTT and HTTPS must decide alike. `mqtt`: a rule or an event that only MQTT has. */
  door: 'mqtt' | 'both'
  institution: string
  payload: Buffer
  expect: Expectation
}

export interface Expectation {
  outcome: 'published' | 'blocked' | 'invalid'
  /** Ids of the livestreams an accepted event reaches, each once. */
  services?: string[]
  /** The expected errors, in no particular order. */
  errors: { path: string; errorCode: string }[]
}

/**
 * Reads the sample events of a folder. Their times are relative to `now`.
 *
 * A file holds its payload as `event` (JSON), `raw` (text) or `base64`. In `event` and `raw`, `{{now}}`, `{{now+60s}}`
 * and `{{now-60s}}` stand for instants. `generate` makes a large event from `event`:
 * - `services` repeats the first service `count` times, with the index 0, 1, … in place of `{{i}}`.
 * - `size` pads the title until the payload has `bytes` bytes.
 * - `nesting` adds a field to the first service, so that the event is `depth` levels deep.
 *
 * An expected error with `repeat: n` stands for `n` errors, with the index in place of `{{i}}` in the path.
 */
export function loadSamples(dir: 'accepted' | 'refused', now: number): Sample[] {
  const folder = projectFile(`test/samples/${dir}`)
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return files.sort().map((file) => {
    const source: SampleFile = JSON.parse(readFileSync(join(folder, file), 'utf8'))
    const { why, door, institution, expect } = source
    const errors = expect.errors.flatMap(({ path, errorCode, repeat = 1 }) =>
      Array.from({ length: repeat }, (_, index) => ({ path: count(path, index), errorCode })),
    )
    return {
      file: `${dir}/${file}`,
      why,
      door,
      institution,
      payload: payloadOf(source, now),
      expect: { ...expect, errors },
    }
  })
}

interface SampleFile extends Omit<Sample, 'file' | 'payload' | 'expect'> {
  event?: SampleEvent
  raw?: string
  base64?: string
  generate?:
    | { kind: 'services'; count: number }
    | { kind: 'size'; bytes: number }
    | { kind: 'nesting'; depth: number }
  expect: Omit<Expectation, 'errors'> & { errors: { path: string; errorCode: string; repeat?: number }[] }
}

interface SampleEvent {
  title: string
  services: object[]
}

function payloadOf({ event, raw, base64, generate }: SampleFile, now: number): Buffer {
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  if (raw !== undefined) return Buffer.from(setTimes(raw, now))
  if (event === undefined) throw new Error('a sample needs event, raw or base64')
  switch (generate?.kind) {
    case 'services': {
      const service = JSON.stringify(event.services[0])
      const services = Array.from({ length: generate.count }, (_, index) => JSON.parse(count(service, index)))
      return write({ ...event, services }, now)
    }
    case 'size': {
      const missing = generate.bytes - write(event, now).length
      return write({ ...event, title: event.title + 'x'.repeat(missing) }, now)
    }
    case 'nesting': {
      // The event, its services and the service are the first three levels.
      const levels = generate.depth - 3
      const [service] = event.services
      const text = write({ ...event, services: [{ ...service, nested: mark }] }, now).toString()
      return Buffer.from(text.replace(`"${mark}"`, '['.repeat(levels) + ']'.repeat(levels)))
    }
    default:
      return write(event, now)
  }
}

const mark = '{{nested}}'

function write(event: SampleEvent, now: number): Buffer {
  return Buffer.from(setTimes(JSON.stringify(event), now))
}

function setTimes(text: string, now: number): string {
  return text.replace(/\{\{now(?:([+-]\d+)s)?\}\}/g, (_, seconds = '0') =>
    new Date(now + Number(seconds) * 1000).toISOString(),
  )
}

function count(text: string, index: number): string {
  return text.replaceAll('{{i}}', String(index))
}

/** An event in a shape that this field sends, and what becomes of it in each form and at each door. */
export interface DialectSample {
  file: string
  why: string
  /** Who sends this shape. */
  origin: string
  institution: string
  sent: Record<string, unknown>
  /** Over MQTT, with `HUB_DIALECTS=all`. */
  all: Becomes
  /** Over MQTT, with `HUB_DIALECTS=document`. */
  document: Becomes
  /** Over HTTPS, with either. */
  https: Becomes
}

/** The published event without the ids that the hub gives, or the errors of a refused one. */
export type Becomes =
  | { becomes: 'as sent' | Record<string, unknown>; warnings?: { path: string; errorCode: string }[] }
  | { errors: { path: string; errorCode: string }[] }

/** Reads the samples of both forms of an event. Their times are relative to `now`. */
export function loadDialects(now: number): DialectSample[] {
  const folder = projectFile('test/samples/dialects')
  return readdirSync(folder)
    .sort()
    .map((file) => ({ file, ...JSON.parse(setTimes(readFileSync(join(folder, file), 'utf8'), now)) }))
}
