import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { linesOf } from '../../../../admin/backup/export-file.ts'
import { families } from '../../../../store/keys.ts'
import { isOfNodes, problemOf } from '../../../../store/records.ts'
import type { StoredRecord } from '../../../../store/store.ts'
import { ask, type Node } from '../../../admin/backup/filled.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { bytesOf, damaged, samples } from '../../../store/record-samples.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

/** A damaged record that no node can read, with its family. */
interface Damaged extends StoredRecord {
  value: Buffer
  family: string
}

/** For each family some damaged records: at most this many. */
function damagedOf(most: number): Damaged[] {
  return samples.flatMap((sample) => {
    // No export has it, damaged or not.
    if (isOfNodes(sample.key)) return []
    const family = [...families.keys()].find((word) => sample.key.startsWith(word)) ?? ''
    const refused = [...damaged(sample)]
      .map(({ value }) => ({ key: sample.key, value, family }))
      .filter((record) => problemOf(record) !== undefined)
    // Some of the first, which are no JSON, and some of the last, which lack something deep inside.
    const chosen = new Set([...refused.slice(0, most - 1), ...refused.slice(-1)])
    return [...chosen]
  })
}

onEachStore(
  'hubctl import refuses each family of damaged records, and changes nothing',
  async (t, store, driver) => {
    const node = await spawnHub(t, await temporaryDirectory(t), store)
    const { run } = await ask<{ run: string }>(node, 'import.outcome')
    const all = damagedOf(2)
    t.ok(all.length > 30, `${all.length} records`)
    t.jobs = 3
    // hubctl judges the file, before it asks the node: on Redis some are enough.
    for (const record of driver === 'redis' ? all.slice(-3) : all) {
      t.test(`${record.key} ${record.value}`.slice(0, 80), async (t) => {
        const answer = await importOf(t, node, record)
        t.equal(answer.code, 1)
        t.match(answer.stderr, 'nothing was imported')
        if (record.family === 'number' || record.family === 'format') return
        for (const part of [JSON.stringify(record.key), JSON.stringify(record.family), 'expected '])
          t.match(answer.stderr, part)
      })
    }
    await t.test('nothing was changed', async (t) => {
      t.equal((await ask<{ run: string }>(node, 'import.outcome')).run, run, 'the node did not start again')
      t.same(await ask(node, 'credentials.list'), [])
      t.notOk(existsSync(join(dirname(node.adminSocket), 'import.offered')))
    })
  },
)

onEachStore('a file that was put there for a start is judged by that start', async (t, settings) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'data'), { recursive: true })
  await writeExport(join(home, 'data', 'import'), {
    key: 'every/s/0000000000000001',
    value: Buffer.from('{"qos":1}'),
  })
  const hub = await startTestHub(t, settings, home)
  t.match(
    hub.lines.find(({ msg }) => msg === 'the export is not taken in'),
    { reason: /"every\/s\/0000000000000001" of "every\/" cannot be read, expected .*"bytes"/ },
  )
  t.ok(existsSync(join(home, 'data', 'import.refused')))
  t.same(await hub.ask('credentials.list'), [])
})

onEachStore('a start goes on with a damaged record, or names this very key', async (t, settings) => {
  const home = await temporaryDirectory(t)
  await startTestHub(t, settings, home).then((hub) => hub.close())
  const good = samples.filter(({ key }) => !['number', 'format'].includes(key))
  await change(settings, home, (store) =>
    store.commit(good.map((sample) => ({ put: sample.key, value: bytesOf(sample) }))),
  )
  let named = 0
  for (const { key, value } of damagedOf(1).filter(({ family }) => family.endsWith('/'))) {
    await change(settings, home, (store) => store.commit([{ put: key, value }]))
    const error = await startTestHub(t, settings, home).then(
      (hub) => hub.close(),
      (error: unknown) => error,
    )
    if (error !== undefined) {
      named++
      t.match(String(error), `the record ${JSON.stringify(key)} of`, `${key} ${value}`)
      t.match(String(error), /expected .*: the store is damaged\. Import a backup into an empty store$/)
    }
    const sample = good.find((one) => one.key === key)
    await change(settings, home, (store) =>
      store.commit([sample ? { put: key, value: bytesOf(sample) } : { del: key }]),
    )
  }
  t.ok(named >= 10, `${named} starts named their record`)
})

type OpenStore = Awaited<ReturnType<typeof openStoreOf>>

async function change(settings: StoreSettings, home: string, work: (store: OpenStore) => Promise<unknown>) {
  const store = await openStoreOf(settings, join(home, 'data'))
  await work(store)
  await store.close()
}

let files = 0

async function importOf(t: Test, node: Node, record: StoredRecord) {
  const file = join(await temporaryDirectory(t), `${files++}.export`)
  await writeExport(file, record)
  return runHubctl(['--socket', node.adminSocket, 'import', file])
}

async function writeExport(file: string, { key, value }: StoredRecord): Promise<void> {
  const pages = async function* () {
    yield [{ key, value }]
  }
  const lines: string[] = []
  for await (const line of linesOf({ release: '1', at: '', from: 'embedded' }, pages()))
    lines.push(`${JSON.stringify(line)}\n`)
  await writeFile(file, gzipSync(lines.join('')))
}
