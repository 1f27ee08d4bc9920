import { openEmbeddedStore } from '../../store/embedded.ts'

/*
 * A process that commits to the store in a directory until the test kills it. For each commit it prints `underway` and
 * the key, and then the key if the store acknowledges the commit, or `refused`. After a refused commit it reads the
 * key, and prints `unread` and the reason if this read fails. Usage: `writer.ts DIRECTORY PREFIX`
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
