import type { Dumpable, SharedStore, StoredRecord } from '../store.ts'
import { contentOf, counterKey, keysBelow, timeOf } from '../stored-value.ts'
import { decodeRecords } from './changes.ts'
import type { Connection } from './connection.ts'
import { entriesOf, type Known, readPosition } from './log.ts'
import { type Keys, numberScript, pageScript, start } from './script.ts'

/** Limits of a page, which Redis sends in one answer. */
const pageEntries = 512
const pageBytes = 1024 * 1024
/** Maximum number of entries of the log in one answer. */
const logEntries = 32

/** The methods that read a store. All but `get` reject if Redis has lost the log entry that `known` names. */
export function createLogReading(
  ask: Connection['ask'],
  keys: Keys,
  known: Known,
): Pick<SharedStore, 'get' | 'lastNumber' | 'range' | 'last'> & Dumpable {
  const ofReading = [keys.values, keys.keys, keys.log, keys.head]
  return {
    async get(key) {
      const stored = await ask((send) => send('hget', [keys.values, key]))
      return Buffer.isBuffer(stored) ? contentOf(stored) : undefined
    },

    async lastNumber() {
      const found = await ask((send) => numberScript(send, ofReading, [known.id()]))
      const [id, number] = Array.isArray(found) ? found : []
      known.saw(String(id ?? start))
      return Number(number)
    },

    async *range(prefix, bounds = {}) {
      const { gte, lt } = keysBelow(prefix, bounds)
      let from: Buffer | string = `[${gte}`
      for (let left = bounds.most ?? Infinity; ; ) {
        const page: Buffer[] = await readPage(from, `(${lt}`, { count: left })
        yield* contentsOf(page)
        left -= page.length / 2
        const last = page.at(-2)
        if (!last || left === 0) return
        from = Buffer.concat([Buffer.from('('), last])
      }
    },

    async last(prefix, count, before) {
      const { gte, lt } = keysBelow(prefix, { before })
      return contentsOf(await readPage(`(${lt}`, `[${gte}`, { isReverse: true, count }))
    },

    hasFormer: async () => (await ask((send) => send('exists', [keys.formerValues]))) === 1,

    /**
     * Yields all pages of the store. After each page, yields the changes since the last look at the log. Applied in
     * this order, the records give the store at the time of the last page.
     */
    async *dump() {
      const position = { read: await ask((send) => readPosition({ send }, keys)) }
      for (let from: Buffer | string = '-'; ; ) {
        const page: Buffer[] = await readPage(from, '+')
        yield recordsOf(page)
        yield* changesSince(position)
        const last = page.at(-2)
        if (!last) break
        from = Buffer.concat([Buffer.from('('), last])
      }
      // The counter may already be ahead of the records. Skipped numbers do no harm (`Numbered`).
      const number = await ask((send) => send('hget', [keys.head, 'number']))
      if (Buffer.isBuffer(number)) yield [{ key: counterKey, value: number }]
    },
  }

  /** Yields the records of the log after `position`, and moves `position` to the end. */
  async function* changesSince(position: { read: string }): AsyncGenerator<StoredRecord[]> {
    for (let count = logEntries; count === logEntries; ) {
      const after = position.read === start ? '-' : `(${position.read}`
      const found = await ask((send) => send('xrange', [keys.log, after, '+', 'COUNT', logEntries]))
      const entries = entriesOf(found)
      count = entries.length
      for (const { id, previous, changes, base, withoutEffect } of entries) {
        if (previous !== position.read) {
          throw new Error('too much was changed meanwhile: the log of changes does not reach back')
        }
        position.read = id
        yield decodeRecords(changes, base, (nth) => !withoutEffect.has(nth))
      }
    }
  }

  async function readPage(
    from: Buffer | string,
    to: string,
    { isReverse = false, count = pageEntries } = {},
  ): Promise<Buffer[]> {
    const args = [from, to, Math.min(count, pageEntries), pageBytes, isReverse ? 'REV' : '']
    const found = await ask((send) => pageScript(send, ofReading, [...args, known.id()]))
    const [id, ...page]: Buffer[] = Array.isArray(found) ? found : []
    known.saw(String(id ?? start))
    return page
  }
}

function contentsOf(page: readonly Buffer[]): [key: string, value: Buffer][] {
  return recordsOf(page).map(({ key, value }) => [key, value])
}

/** Makes records from a list in which each key is followed by its value. */
function recordsOf(page: readonly Buffer[]) {
  const records: { key: string; value: Buffer; time: number | undefined }[] = []
  for (let index = 0; index + 1 < page.length; index += 2) {
    const [key, stored] = page.slice(index, index + 2)
    if (key && stored) records.push({ key: key.toString(), value: contentOf(stored), time: timeOf(stored) })
  }
  return records
}
