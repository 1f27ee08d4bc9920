import { copyFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { checkFile, linesOf, readFile } from '../../../admin/backup/export-file.ts'
import type { StoredRecord } from '../../../store/store.ts'
import { fill, isAllThere } from '../../admin/backup/filled.ts'
import { runHubctl } from '../../cli/run-hubctl.ts'
import { station } from '../../events.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, openStoreOf } from '../../stores.ts'

const rounds = Number(process.env.IMPORT_ROUNDS ?? 4)
/** Enough records that an import can be killed while it runs. */
const moreRecords = 60_000

onEachStore(`an import that is killed ${rounds} times is refused or completed`, async (t, store) => {
  const home = await temporaryDirectory(t)
  const full = await spawnHub(t, home)
  const filled = await fill(t, full, [station()], { sessions: 1, credentials: 2, webhooks: 0 })
  const small = join(home, 'small.export')
  await runHubctl(['--socket', full.adminSocket, 'export', small])
  const file = join(home, 'hub.export')
  await enlarge(small, file)

  const fresh = await temporaryDirectory(t)
  const dataDir = join(fresh, 'data')
  await (await spawnHub(t, fresh, store)).stop('SIGTERM')
  await copyFile(file, join(dataDir, 'import'))
  let [killed, inTheMiddle] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    const killAfterMs = 900 + 200 * round
    const early = await spawnHub(t, fresh, store, { killAfterMs }).catch(() => undefined)
    if (early) {
      await early.stop('SIGKILL')
      break
    }
    killed++
    const stored = await openStoreOf(store, dataDir)
    const isBegun = (await stored.get('import/mark')) !== undefined
    await stored.close()
    if (!isBegun) continue
    inTheMiddle++
    await rename(join(dataDir, 'import'), join(dataDir, 'elsewhere'))
    await t.rejects(spawnHub(t, fresh, store), /an import into this store has not finished/)
    await rename(join(dataDir, 'elsewhere'), join(dataDir, 'import'))
  }
  t.comment(`killed ${killed} times, ${inTheMiddle} times in the middle`)
  const node = await spawnHub(t, fresh, store)
  await isAllThere(t, node, filled)
  await node.stop('SIGTERM')
  const stored = await openStoreOf(store, dataDir)
  let count = 0
  for await (const _ of stored.range('health/more/')) count++
  await stored.close()
  t.equal(count, moreRecords, 'every record is there')
})

/** Copies the export `small` to `file`, with `moreRecords` more records that no node reads. */
async function enlarge(small: string, file: string): Promise<void> {
  const { release, at, from } = await checkFile(small)
  const pages = async function* () {
    yield* readFile(small)
    for (let nth = 0; nth < moreRecords; nth += 1000) {
      yield Array.from({ length: 1000 }, (_, index): StoredRecord => {
        return { key: `health/more/${nth + index}`, value: Buffer.alloc(300, nth % 251) }
      })
    }
  }
  const lines: string[] = []
  for await (const line of linesOf({ release, at, from }, pages())) lines.push(`${JSON.stringify(line)}\n`)
  await writeFile(file, gzipSync(lines.join('')))
}
