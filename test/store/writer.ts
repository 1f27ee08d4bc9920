import { openEmbeddedStore } from '../../store/embedded.ts'

/*
 * Commits to the store in a directory until the test kills the process. It prints:
 * - `underway KEY`: the store has called `underway`
 * - `KEY`: the commit was acknowledged
 * - `refused`: the commit failed
 * - `unread REASON`: after a refusal, the key could not be read
 *
 * Usage: `writer.ts DIRECTORY PREFIX`
 */
process.on('SIGXFSZ', () => {}) // A write beyond the file size limit must fail, not end the process.
const [directory = '', prefix = ''] = process.argv.slice(2)
const store = await openEmbeddedStore(directory)
let count = 0
await Promise.all(Array.from({ length: 4 }, commitForEver))

function unread(error: Error): void {
  process.stdout.write(`unread ${error.message}\n`)
}

async function commitForEver(): Promise<void> {
  for (;;) {
    const key = `${prefix}/${count++}`
    const value = Buffer.alloc(500 + (count % 2000), key)
    const underway = () => {
      process.stdout.write(`underway ${key}\n`)
    }
    const line = await store.commit([{ put: key, value }], underway).then(
      () => key,
      () => {
        store.get(key).catch(unread)
        return 'refused'
      },
    )
    await new Promise((resolve) => process.stdout.write(`${line}\n`, resolve))
  }
}
