import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { checkFile, linesOf } from '../../../../admin/backup/export-file.ts'
import { families } from '../../../../store/keys.ts'
import { isOfNodes, problemOf } from '../../../../store/records.ts'
import type { StoredRecord } from '../../../../store/store.ts'
import { ask } from '../../../admin/backup/filled.ts'
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

t.test('an export with a record that no node can read is refused with its key', async (t) => {
  const file = join(await temporaryDirectory(t), 'export')
  const all = damagedOf(2)
  t.ok(all.length > 30, `${all.length} records`)
  for (const record of all) {
    await writeExport(file, record)
    const { name, message } = await checkFile(file).then(
      () => new Error('taken'),
      (error: Error) => error,
    )
    t.equal(name, 'UnusableFile')
    for (const part of refusalOf(record)) t.match(message, part, `${record.key} ${record.value}`.slice(0, 80))
  }
})

onEachStore('hubctl import refuses a damaged record, and changes nothing', async (t, store) => {
  const node = await spawnHub(t, await temporaryDirectory(t), store)
  const { run } = await ask<{ run: string }>(node, 'import.outcome')
  const file = join(await temporaryDirectory(t), 'export')
  for (const record of damagedOf(2).slice(-2)) {
    await writeExport(file, record)
    const answer = await runHubctl(['--socket', node.adminSocket, 'import', file])
    t.equal(answer.code, 1)
    for (const part of [...refusalOf(record), 'nothing was imported']) t.match(answer.stderr, part)
  }
  t.equal((await ask<{ run: string }>(node, 'import.outcome')).run, run, 'the node did not start again')
  t.same(await ask(node, 'credentials.list'), [])
  t.notOk(existsSync(join(dirname(node.adminSocket), 'import.offered')))
})

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

/** Families that a start reads whole, among others. */
const readAtStart = 'user/ credential/ topic/ subscription/ session/ work/ every/ retained/'.split(' ')

onEachStore('a start goes on with a damaged record, or names this very key', async (t, settings) => {
  const home = await temporaryDirectory(t)
  await startTestHub(t, settings, home).then((hub) => hub.close())
  const good = samples.filter(({ key }) => !['number', 'format'].includes(key))
  await change(settings, home, (store) =>
    store.commit(good.map((sample) => ({ put: sample.key, value: bytesOf(sample) }))),
  )
  const named = new Set<string>()
  for (const { key, value, family } of damagedOf(1).filter(({ family }) => family.endsWith('/'))) {
    await change(settings, home, (store) => store.commit([{ put: key, value }]))
    const error = await startTestHub(t, settings, home).then(
      (hub) => hub.close(),
      (error: unknown) => error,
    )
    if (error !== undefined) {
      named.add(family)
      t.match(String(error), `the record ${JSON.stringify(key)} of`, `${key} ${value}`)
      t.match(String(error), /expected .*: the store is damaged\. Import a backup into an empty store$/)
    }
    const sample = good.find((one) => one.key === key)
    await change(settings, home, (store) =>
      store.commit([sample ? { put: key, value: bytesOf(sample) } : { del: key }]),
    )
  }
  t.same(
    readAtStart.filter((family) => !named.has(family)),
    [],
  )
})

type OpenStore = Awaited<ReturnType<typeof openStoreOf>>

async function change(settings: StoreSettings, home: string, work: (store: OpenStore) => Promise<unknown>) {
  const store = await openStoreOf(settings, join(home, 'data'))
  await work(store)
  await store.close()
}

/** The words with which an import refuses an export that has this record. */
function refusalOf({ key, family }: Damaged): string[] {
  if (!family.endsWith('/')) return []
  return [`the record ${JSON.stringify(key)} of ${JSON.stringify(family)}`, 'expected ']
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
