import { openEmbeddedStore } from '../../store/embedded.ts'

/*
 * A process to be killed: commits without end to the store in a directory and prints the key of every
 * acknowledged commit, or `refused`; before that `underway` and the key. Reads after each refused one,
 * and prints `unread` and the reason where that fails. `writer.ts DIRECTORY PREFIX`
 */
process.on('SIGXFSZ', () => {}) // A write beyond a file size limit is to fail, not to end the process.
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
