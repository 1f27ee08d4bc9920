import { isUtf8 } from 'node:buffer'
import { type ErrorItem, ErrorList, errorItem, pathOf, quote } from './error.ts'
import { jsonFault } from './json-fault.ts'

/** Deepest nesting of objects and arrays; the event itself is level 1. */
const maxNesting = 64

/**
 * Maximum number of values in a payload; each object and array counts too. 200,000 values would fit into 400 kB, and
 * parse slowly: docs/decisions, "An event has at most 10,000 values, and names at most 200 livestreams".
 */
const maxValues = 10_000

/**
 * Reads a payload as one JSON object. Refuses what readers could understand differently (duplicate keys, numbers beyond
 * double precision, `__proto__`), what stops some of them (half characters), or what could exhaust them (nesting, number
 * of values). Errors repeat no value: it may be a password.
 */
export function parseJson(payload: Uint8Array): { value: unknown } | { errors: ErrorItem[] } {
  if (!isUtf8(payload)) return refused('it is not valid UTF-8')
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.length).toString()
  // RFC 8259 §8.1: a byte order mark must not be added.
  if (text.startsWith('\uFEFF')) return refused('it starts with a byte order mark, expected {')

  const errors = new ErrorList()
  if (!scan(text, errors)) return { errors: errors.items() }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refused(jsonFault(text) ?? 'it does not parse')
  }
  if (!isRecord(value)) {
    const name = typeof value === 'object' ? quote(value) : `a ${typeof value}`
    return refused(`it is ${name}, expected an object`)
  }
  for (const path of halfCharacters(text, value)) {
    errors.add(() => errorItem('payload.json', path, halfCharacter))
    if (errors.isFull) break
  }
  return errors.isEmpty ? { value } : { errors: errors.items() }
}

/** What is wrong where `halfCharacters` finds something. */
export const halfCharacter = 'half a character, expected both halves of a surrogate pair'

/**
 * The paths of the texts and keys with half a character (a lone surrogate, RFC 8259 §8.2), one after the other. UTF-8
 * cannot write one, and some JSON readers stop at it. `value` is what `JSON.parse` made of `text`. In valid UTF-8 only
 * an escape can bring half a character, so a text without such an escape costs one search.
 */
export function* halfCharacters(text: string, value: unknown): Generator<string, undefined> {
  if (!surrogateEscape.test(text)) return
  // No recursion: what was not scanned before, such as a feed, may be nested deeply.
  const open: JsonPlace[] = [{ value, key: undefined, inside: undefined }]
  for (let place = open.pop(); place; place = open.pop()) {
    const { key, value } = place
    if (loneSurrogate.test(key ?? '') || (typeof value === 'string' && loneSurrogate.test(value))) {
      yield pathOf(...keysOf(place))
    }
    if (typeof value !== 'object' || value === null) continue
    for (const [key, inner] of Object.entries(value).reverse())
      open.push({ value: inner, key, inside: place })
  }
}

/** A value, and where it is. Undefined `key` and `inside`: the outermost value. */
interface JsonPlace {
  value: unknown
  key: string | undefined
  inside: JsonPlace | undefined
}

function keysOf(place: JsonPlace): string[] {
  const keys: string[] = []
  for (let at: JsonPlace | undefined = place; at?.key !== undefined; at = at.inside) keys.push(at.key)
  // A longer path is cut anyway.
  return keys.reverse().slice(0, 300)
}

const surrogateEscape = /\\u[dD][89a-fA-F]/
const loneSurrogate = /\p{Cs}/u

function refused(detail: string): { errors: ErrorItem[] } {
  return { errors: [errorItem('payload.json', '.', detail)] }
}

/** An object or array that is open at the current index of the scan. */
interface Level {
  /** The keys of an object so far. Undefined: this level is an array. */
  keys: Keys | undefined
  /** Key or index of the current value. */
  at: string | number
}

/**
 * Finds faults that JSON.parse does not report, in linear time for any input: also in text that is not JSON. It comes
 * before JSON.parse, which is slow with a hundred thousand open brackets or keys.
 *
 * Stops at `maxNesting`, at `maxValues`, or when the list of errors is full, and then returns false.
 */
function scan(text: string, errors: ErrorList): boolean {
  const levels: Level[] = []
  let values = 0
  /** The number of keys so far. Keys count apart, because text that is not JSON can have more keys than values. */
  let keys = 0
  let index = 0
  while (index < text.length) {
    const level = levels.at(-1)
    const character = text[index]
    switch (character) {
      case '{':
      case '[':
        if (levels.length >= maxNesting) {
          report(`nested deeper than ${maxNesting} levels`)
          return false
        }
        levels.push(
          character === '{' ? { keys: { few: [], times: undefined }, at: '' } : { keys: undefined, at: 0 },
        )
        values++
        index++
        break
      case '}':
      case ']':
        levels.pop()
        index++
        break
      case ',':
        if (typeof level?.at === 'number') level.at++
        index++
        continue
      case '"': {
        const end = endOfString(text, index)
        // A string is a key exactly when a colon follows.
        if (level?.keys !== undefined && text[skipSpace(text, end)] === ':') {
          level.at = spelledKey(text.slice(index, end))
          checkKey(level.at, level.keys)
          keys++
        } else {
          values++
        }
        index = end
        break
      }
      case ':':
      case ' ':
      case '\n':
      case '\t':
      case '\r':
        index++
        continue
      default:
        word.lastIndex = index
        word.test(text)
        checkNumber(text.slice(index, word.lastIndex))
        values++
        index = word.lastIndex
    }
    if (errors.isFull) return false
    if (Math.max(values, keys) > maxValues) {
      errors.add(() => errorItem('payload.json', '.', `more than ${maxValues} values`))
      return false
    }
  }
  return true

  function checkKey(key: string, keys: Keys): void {
    if (key === '__proto__') report('the key __proto__ is not allowed')
    if (timesOf(key, keys) === 2) report(`the key ${quote(key)} occurs twice`)
  }

  function checkNumber(literal: string): void {
    // A short number without an exponent cannot be out of range.
    if (literal.length < 16 && !literal.includes('e') && !literal.includes('E')) return
    const value = Number(literal)
    // Beyond 2^53-1, different integers become the same double (service.md §8).
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      report(`the number is out of range, expected at most ±${Number.MAX_SAFE_INTEGER}`)
    }
  }

  function report(detail: string): void {
    errors.add(() => errorItem('payload.json', pathOf(...levels.map((level) => level.at)), detail))
  }
}

/** A number, true, false or null, or a word that JSON does not allow. */
const word = /[^{}[\]",: \n\t\r]+/y

/** The keys of an object: a few different ones, and how often each has occurred if there are more. */
interface Keys {
  few: string[]
  times: Map<string, number> | undefined
}

/** Most objects need no map for their keys, which takes longer than all the rest of the scan. */
const fewKeys = 16

/** Counts a key. Returns how often the key has occurred so far. */
function timesOf(key: string, keys: Keys): number {
  if (!keys.times) {
    if (keys.few.length < fewKeys && !keys.few.includes(key)) {
      keys.few.push(key)
      return 1
    }
    keys.times = new Map(keys.few.map((each) => [each, 1]))
  }
  const times = (keys.times.get(key) ?? 0) + 1
  keys.times.set(key, times)
  return times
}

/** The index after the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end < 0 ? text.length : end + 1
}

/** Whether an odd number of backslashes stands before this index. */
function isEscaped(text: string, index: number): boolean {
  let start = index
  while (text[start - 1] === '\\') start--
  return (index - start) % 2 === 1
}

/** The key that a string literal spells: `"\u0061"` and `"a"` are the same key. */
function spelledKey(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1)
  try {
    return JSON.parse(literal)
  } catch {
    return literal // JSON.parse of the whole text will report the fault
  }
}

function skipSpace(text: string, start: number): number {
  let index = start
  while (text[index] === ' ' || text[index] === '\n' || text[index] === '\t' || text[index] === '\r') index++
  return index
}

/** Whether a value is what JSON calls an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
