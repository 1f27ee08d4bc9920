import { readFileSync } from 'node:fs'
import type open from 'aedes-persistence-redis'
import { formats } from '../../config/formats.ts'
import { show } from '../../config/mask.ts'
import { isRecord } from '../../event/json.ts'
import { isRefusal, refusal } from '../../operations/errors.ts'
import { createRedisClients, nameOf } from '../../store/redis/client.ts'
import { createConnection, isNoAnswer } from '../../store/redis/connection.ts'
import { reasonOf } from '../../telemetry/reason.ts'
import { LeftOut } from './left-out.ts'

export type AedesSource = Awaited<ReturnType<typeof openAedesSource>>

type Ask = (command: string, ...args: (string | number)[]) => Promise<unknown>

const pageOfRetained = readFileSync(new URL('./page-of-retained.lua', import.meta.url), 'utf8')
/** Longest wait for an answer of Redis, milliseconds. */
const timeoutMs = 5_000
/** Largest value that is read: an event of 400 kB with its topic and the fields that Aedes adds. */
const maxValueBytes = 512 * 1024
/** Maximum number of messages of one session that are read. */
const maxQueue = 10_000

/**
 * Reads the data of an Aedes broker through `aedes-persistence-redis`, piece by piece. A piece that cannot be read
 * becomes a `LeftOut`. Nothing is written to that Redis.
 */
export async function openAedesSource(url: string, maxFilters: number) {
  const expected = 'the URL of a Redis with data of Aedes, such as redis://user:password@host:6379/0'
  const wrong = (why: string) => refusal(`url must be ${expected}, not ${show('url', url)}: ${why}`)
  if (url.length > 2_000 || !formats['redis-url'](url)) throw wrong('it has another form')
  const { connect } = await createRedisClients({ url }, timeoutMs).catch((error: unknown) => {
    throw wrong(reasonOf(error))
  })
  const connection = createConnection(connect('hub-import'), { timeoutMs, quietMs: timeoutMs })
  const ask: Ask = (command, ...args) => connection.ask((send) => send(command, args))
  try {
    await checkData(ask)
    const { default: persistence } = await import('aedes-persistence-redis')
    const reading = createReading(orGone(ask, nameOf({ url })), persistence, maxFilters)
    return { ...reading, close: connection.close }
  } catch (error) {
    connection.close()
    throw wrong(reasonOf(error))
  }
}

/** Rejects if Redis has no data of Aedes, or is a cluster. */
async function checkData(ask: Ask): Promise<void> {
  const [clients, retained, info] = await Promise.all([
    ask('TYPE', 'clients'),
    ask('TYPE', 'retained'),
    ask('INFO', 'cluster').catch((error: unknown) => {
      if (isNoAnswer(error)) throw error
      return ''
    }),
  ])
  if (/^cluster_enabled:1/m.test(String(info))) throw new Error('a Redis Cluster is not supported')
  const found = `${clients} ${retained}`
  if (!/^(set|none) (hash|none)$/.test(found) || found === 'none none') {
    throw new Error('it has neither a set "clients" nor a hash "retained" as Aedes keeps them')
  }
}

/** Ends the import if Redis does not answer. Any other error concerns one piece of data. */
function orGone(ask: Ask, name: string): Ask {
  return async (...command) => {
    try {
      return await ask(...command)
    } catch (error) {
      throw isNoAnswer(error) ? endedBy(`${name}: ${reasonOf(error)}`) : error
    }
  }
}

/** The error of an import that ends early. */
export function endedBy(why: string): Error {
  return refusal(`${why}. What came over until then stays; another import goes on from there`)
}

function createReading(ask: Ask, persistence: typeof open, maxFilters: number) {
  const stored = persistence({ conn: readingConnection(ask, maxFilters) })

  /**
   * Decodes the value of a retained message. The package decodes only what it reads itself. So it gets a connection
   * that returns this value.
   */
  const retainedOf = async ([topic, value]: [topic: string, value: unknown]) => {
    const one = persistence({ conn: { hgetBuffer: async () => value } })
    const read = readable(async () => {
      if (/[+#]/.test(topic)) throw new LeftOut('topic', 'a topic name has no wildcards')
      if (typeof value === 'number') throw tooLarge(value)
      return payloadOf(await firstOf(one.createRetainedStreamCombi([topic])))
    })
    return { topic, payload: await read.catch(leftOut) }
  }

  return {
    /** The client ids of all sessions, some at a time. */
    async *clientIds(): AsyncGenerator<string[]> {
      for await (const ids of scan((cursor) => ask('SSCAN', 'clients', cursor, 'COUNT', 100))) {
        yield ids.map(String)
      }
    },

    /** All topics with the payloads that they retain, some at a time. */
    async *retained(): AsyncGenerator<{ topic: string; payload: Buffer | LeftOut }[]> {
      const pages = scan((cursor) => ask('EVAL', pageOfRetained, 1, 'retained', cursor, maxValueBytes))
      for await (const page of pages) yield Promise.all(pairsOf(page).map(retainedOf))
    },

    /** The filters of a session. */
    filtersOf: (clientId: string): Promise<unknown[]> =>
      readable(() => stored.subscriptionsByClient({ id: clientId })),

    /** The payloads of the messages that wait for a session, in their order. */
    async *queueOf(clientId: string): AsyncGenerator<Buffer | LeftOut> {
      for (let at = 0; at < maxQueue; at++) {
        const window = { at, isThere: false }
        const one = persistence({ conn: readingConnection(ask, maxFilters, window) })
        const read = readable(async () => payloadOf(await firstOf(one.outgoingStream({ id: clientId }))))
        const payload = await read.catch(leftOut)
        const isOver = !window.isThere
        // The loop ends with one read behind the last message. Normally, this read gives `gone`. It gives `unreadable`
        // if the key holds no list: the report must then say so.
        if (!isOver || (payload instanceof LeftOut && payload.reason === 'unreadable')) yield payload
        if (isOver) return
      }
      yield new LeftOut('queue-too-long', `what is behind the first ${maxQueue} messages`)
    },
  }
}

/**
 * A read-only connection for the package, with a limit on the size of each answer. `lrem` does nothing: if a message is
 * missing, the package would remove its entry from the list. With `window`, the package sees only the message at place
 * `at` of the list. `isThere` then says whether the list has that place.
 */
function readingConnection(ask: Ask, maxFilters: number, window?: { at: number; isThere: boolean }): object {
  return {
    async hgetallBuffer(key: string) {
      const count = Number(await ask('HLEN', key))
      if (count > maxFilters) {
        throw new LeftOut('too-many-filters', `it has ${count} filters, expected at most ${maxFilters}`)
      }
      const flat = await ask('HGETALL', key)
      return Object.fromEntries(pairsOf(Array.isArray(flat) ? flat : []))
    },
    async getBuffer(key: string) {
      const bytes = Number(await ask('STRLEN', key))
      if (bytes > maxValueBytes) throw tooLarge(bytes)
      return ask('GET', key)
    },
    async lrange(key: string) {
      const at = window?.at ?? 0
      const keys = await ask('LRANGE', key, at, at)
      const found = Array.isArray(keys) ? keys.map(String) : []
      if (window) window.isThere = found.length > 0
      return found
    },
    lrem: async () => 0,
  }
}

/** The pairs of a flat list of keys and values. */
function pairsOf(flat: readonly unknown[]): [key: string, value: unknown][] {
  const keys = flat.filter((_, index) => index % 2 === 0)
  return keys.map((key, index) => [String(key), flat[2 * index + 1]])
}

function tooLarge(bytes: number): LeftOut {
  return new LeftOut('too-large', `${bytes} bytes, expected at most ${maxValueBytes}`)
}

async function* scan(page: (cursor: string) => Promise<unknown>): AsyncGenerator<unknown[]> {
  let cursor = '0'
  do {
    const answer = await page(cursor).catch((error: unknown) => {
      throw isRefusal(error) ? error : endedBy(reasonOf(error))
    })
    const [next, found] = Array.isArray(answer) ? answer : []
    yield Array.isArray(found) ? found : []
    cursor = String(next ?? '0')
  } while (cursor !== '0')
}

async function firstOf(packets: AsyncIterable<unknown>): Promise<unknown> {
  let first: unknown
  // Reads the stream to its end: leaving it early would raise an error.
  for await (const packet of packets) first ??= packet
  if (first === undefined) throw new LeftOut('gone', 'it is there no more')
  return first
}

function payloadOf(packet: unknown): Buffer {
  const { payload, cmd } = isRecord(packet) ? packet : {}
  if (cmd === 'pubrel')
    throw new LeftOut('received', 'its client has it, and had not confirmed the end of QoS 2')
  if (Buffer.isBuffer(payload)) return payload
  if (typeof payload === 'string') return Buffer.from(payload)
  throw new LeftOut('unreadable', 'it is no message')
}

/** Turns a failed read into a `LeftOut` of that piece, unless Redis is gone. */
async function readable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof LeftOut || isRefusal(error)) throw error
    throw new LeftOut('unreadable', reasonOf(error))
  }
}

/** Returns a `LeftOut` as a value, and throws every other error. */
function leftOut(error: unknown): LeftOut {
  if (error instanceof LeftOut) return error
  throw error
}
