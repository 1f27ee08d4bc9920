import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { isOfNodes, positionsIn, problemOf } from '../../store/records.ts'
import type { StoredRecord } from '../../store/store.ts'
import { counterKey, presentFormat, readFormats } from '../../store/stored-value.ts'

/*
 * An export is a gzip file of JSON lines: a header, pages of records, an end. To restore a store, apply the records in
 * their order.
 */

const maker = 'now-playing hub'
/** Version of the file format. Raise it when an earlier release would misread the file. */
const fileVersion = 1
/** Longest line, bytes: one record may be a large livestream feed. */
const maxLineBytes = 256 * 1024 * 1024
/** Maximum number of records in a line. */
const lineRecords = 1_000
/** Longest usual line, bytes. Longer lines are checked for too many values. */
const usualLineBytes = 8 * 1024 * 1024
const maxLineValues = 1_000_000

/** Largest position in an export: positions have 16 digits, and need room to rise. */
const maxPosition = 10 ** 15

interface Header {
  export: typeof maker
  version: number
  /** Format of the store (`store/stored-value.ts`). */
  format: number
  /** The release that wrote the file. */
  release: string
  /** When the export began, ISO 8601. */
  at: string
  from: 'embedded' | 'redis'
}

/** A record: key, event time, value in base64. Without a value, the entry was removed. */
type ExportRow = [key: string, time: number | null, value: string | null]

interface End {
  records: number
  /** Checksum of all bytes before this line. */
  sha256: string
}

/** What a whole file says of itself. */
export interface About extends Header, End {
  /** The position behind which a store of these records goes on. */
  lastPosition: number
}

/** Thrown for a file that cannot be used. The message is for the person who asked. */
export class UnusableFile extends Error {
  override name = 'UnusableFile'
}

/** The lines of an export, as values that the caller writes as JSON. */
export async function* linesOf(
  about: Pick<Header, 'release' | 'at' | 'from'>,
  pages: AsyncIterable<readonly StoredRecord[]>,
): AsyncGenerator<Header | ExportRow[] | End> {
  const hash = createHash('sha256')
  const hashed = <Line>(line: Line): Line => {
    hash.update(`${JSON.stringify(line)}\n`)
    return line
  }
  let records = 0
  yield hashed({ export: maker, version: fileVersion, format: presentFormat, ...about })
  for await (const page of pages) {
    records += page.length
    for (let from = 0; from < page.length; from += lineRecords) {
      yield hashed(page.slice(from, from + lineRecords).map(rowOf))
    }
  }
  yield { records, sha256: hash.digest('hex') }
}

/**
 * Reads a file to its end, and returns what it says of itself. Throws `UnusableFile` for a damaged or cut file, another
 * format, no export, or records that contradict each other. `signal` ends it.
 */
export async function checkFile(path: string, signal?: AbortSignal): Promise<About> {
  const reading = readFile(path)
  for (;;) {
    if (signal?.aborted) await reading.throw(signal.reason)
    const { done, value } = await reading.next()
    if (done) return value
  }
}

/**
 * Yields the records of a file in pages, and returns what it says of itself. Damage may show as late as the end of the
 * file. Throws as `checkFile` does.
 */
export async function* readFile(path: string): AsyncGenerator<readonly StoredRecord[], About> {
  const hash = createHash('sha256')
  let header: Header | undefined
  let end: End | undefined
  let records = 0
  const positions = createPositions()
  for await (const line of readLines(path)) {
    if (end) throw new UnusableFile('the file is damaged: there is more behind its end')
    const value = parse(line)
    if (!header) {
      header = headerOf(value)
    } else if (Array.isArray(value)) {
      const page = value.map(recordOf)
      records += page.length
      page.forEach(positions.note)
      yield page
    } else {
      end = endOf(value)
      if (end.sha256 !== hash.digest('hex') || end.records !== records) {
        throw new UnusableFile('the file is damaged: its checksum is not that of its content')
      }
      continue
    }
    hash.update(line).update('\n')
  }
  if (!header) throw new UnusableFile('the file is empty')
  if (!end) throw new UnusableFile('the file is not whole: its end is missing')
  return { ...header, ...end, lastPosition: positions.last() }
}

/** Finds the last position of an export, and records that contradict it. */
function createPositions() {
  /** The last position that the store has given out, as it says itself. */
  let counted = 0
  let given = { position: 0, key: '' }
  let passed = 0

  return {
    note(record: StoredRecord): void {
      const { key, value } = record
      if (key === counterKey) counted = Number(value)
      const found = positionsIn(record)
      if (!(Math.max(counted, found.given, found.passed) <= maxPosition)) {
        throw new UnusableFile(
          `the file is damaged: ${JSON.stringify(key)} has a position that no store gives out`,
        )
      }
      if (found.given > given.position) given = { position: found.given, key }
      passed = Math.max(passed, found.passed)
    },

    /**
     * Throws `UnusableFile` if the counter is lower than the position of a message: the hub would write others over the
     * later messages. Where a session has got further, the store goes on behind it: its client gets all that follows.
     */
    last(): number {
      const { position, key } = given
      if (position > counted) {
        const expected = `expected "${counterKey}" to be at least that`
        throw new UnusableFile(
          `the file contradicts itself: ${JSON.stringify(key)} has position ${position}, and "${counterKey}" is ${counted}; ${expected}`,
        )
      }
      return Math.max(counted, Math.ceil(passed))
    },
  }
}

function rowOf({ key, value, time }: StoredRecord): ExportRow {
  return [key, time ?? null, value?.toString('base64') ?? null]
}

function recordOf(row: unknown): StoredRecord {
  const [key, time, value]: unknown[] = Array.isArray(row) ? row : []
  const isTime = time === null || typeof time === 'number'
  const isValue = value === null || typeof value === 'string'
  if (typeof key !== 'string' || key === '' || !isTime || !isValue) {
    throw new UnusableFile('the file is damaged: a record is not a key, a time and a value')
  }
  if (isOfNodes(key)) throw new UnusableFile(`the file is damaged: ${JSON.stringify(key)} is in no export`)
  const record = {
    key,
    time: time ?? undefined,
    value: value === null ? undefined : Buffer.from(value, 'base64'),
  }
  const problem = problemOf(record)
  if (problem !== undefined) throw new UnusableFile(problem)
  return record
}

function headerOf(value: unknown): Header {
  const { export: made, version, format, release, at, from } = Object(value)
  if (made !== maker) throw new UnusableFile('the file is no export of a now-playing hub')
  if (version !== fileVersion || !readFormats.includes(format)) {
    const written = `a store of format ${JSON.stringify(format)}, in a file of version ${JSON.stringify(version)}`
    const reads = `this release reads format ${readFormats.join(' or ')} and version ${fileVersion}`
    throw new UnusableFile(
      `another release (${JSON.stringify(release)}) has written it: ${written}; ${reads}`,
    )
  }
  if (typeof release !== 'string' || typeof at !== 'string' || (from !== 'embedded' && from !== 'redis')) {
    throw new UnusableFile('the file is damaged: its header has no release, time or store')
  }
  return { export: maker, version, format, release, at, from }
}

function endOf(value: unknown): End {
  const { records, sha256 } = Object(value)
  if (typeof records === 'number' && typeof sha256 === 'string') return { records, sha256 }
  throw new UnusableFile('the file is damaged: its end has no checksum')
}

function parse(line: Buffer): unknown {
  // A check before parsing, because parsed values take many times the bytes of their line.
  if (line.length > usualLineBytes && valuesOf(line) > maxLineValues) {
    throw new UnusableFile('the file is damaged: a line has too many records')
  }
  try {
    return JSON.parse(line.toString())
  } catch {
    throw new UnusableFile('the file is damaged: a line is no JSON')
  }
}

/** An upper bound of the number of JSON values in a line. */
function valuesOf(line: Buffer): number {
  const [comma, bracket, brace] = Buffer.from(',[{')
  let count = 0
  for (const byte of line) if (byte === comma || byte === bracket || byte === brace) count++
  return count
}

/** The lines of a compressed file. */
async function* readLines(path: string): AsyncGenerator<Buffer> {
  const file = createReadStream(path)
  const unpacked = createGunzip()
  file.on('error', (error) => unpacked.destroy(error))
  let parts: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of file.pipe(unpacked)) {
      let from = 0
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        yield Buffer.concat([...parts, chunk.subarray(from, at)])
        parts = []
        length = 0
        from = at + 1
      }
      parts.push(chunk.subarray(from))
      length += chunk.length - from
      if (length > maxLineBytes) throw new UnusableFile('the file is damaged: a line is endless')
    }
  } catch (error) {
    throw isOfZlib(error)
      ? new UnusableFile('the file is damaged, or no export: it is no whole gzip file')
      : error
  } finally {
    file.destroy()
  }
  if (length > 0) throw new UnusableFile('the file is not whole: its last line is cut off')
}

function isOfZlib(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^Z_/.test(String(error.code))
}
