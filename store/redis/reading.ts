import type { SharedStore } from '../store.ts'
import { contentOf, keysBefore, keysBelow } from '../stored-value.ts'
import type { Connection } from './connection.ts'
import { type Keys, pageScript } from './script.ts'

/** Size of one answer of a range. */
const pageEntries = 512
const pageBytes = 1024 * 1024

/** What can be read of the store; `ask` asks Redis. */
export function createReading(
  ask: Connection['ask'],
  keys: Keys,
): Pick<SharedStore, 'get' | 'lastNumber' | 'range' | 'last'> {
  return {
    async get(key) {
      const stored = await ask((send) => send('hget', [keys.values, key]))
      return Buffer.isBuffer(stored) ? contentOf(stored) : undefined
    },

    lastNumber: async () => Number(await ask((send) => send('hget', [keys.head, 'number']))),

    async *range(prefix, first) {
      const { gte, lt } = keysBelow(prefix, first)
      let from: Buffer | string = `[${gte}`
      for (;;) {
        const page: Buffer[] = await readPage(from, `(${lt}`)
        yield* entriesOf(page)
        const last = page.at(-2)
        if (!last) return
        from = Buffer.concat([Buffer.from('('), last])
      }
    },

    async last(prefix, count, before) {
      const { gte, lt } = keysBefore(prefix, before)
      return entriesOf(await readPage(`(${lt}`, `[${gte}`, { isReverse: true, count }))
    },
  }

  async function readPage(
    from: Buffer | string,
    to: string,
    { isReverse = false, count = pageEntries } = {},
  ): Promise<Buffer[]> {
    const args = [from, to, Math.min(count, pageEntries), pageBytes, isReverse ? 'REV' : '']
    const page = await ask((send) => pageScript(send, [keys.values, keys.keys], args))
    return Array.isArray(page) ? page : []
  }
}

/** Keys and values in turn, as entries. */
function entriesOf(page: readonly Buffer[]): [key: string, value: Buffer][] {
  const entries: [string, Buffer][] = []
  for (let index = 0; index + 1 < page.length; index += 2) {
    const [key, stored] = page.slice(index, index + 2)
    if (key && stored) entries.push([key.toString(), contentOf(stored)])
  }
  return entries
}
