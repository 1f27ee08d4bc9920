import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { openStopped } from '../../admin/backup/stopped.ts'
import { migrate } from '../../migrate/migrate.ts'
import { contentOf } from '../../store/stored-value.ts'
import { openStore } from '../open-store.ts'
import { projectFile } from '../root.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { type Driver, onEachStore, type StoreSettings } from '../stores.ts'

const refused =
  /^3\.0\.0-beta\.1 has written the store, and only 3\.0\.0-beta\.2 can take it over: start 3\.0\.0-beta\.2 on it until it says "hub ready", then this release$/

onEachStore('a store from before the journal is refused unchanged', async (t, settings, driver) => {
  const home = await temporaryDirectory(t)
  const dataDir = join(home, 'data')
  await mkdir(dataDir)
  const content = await fill(t, settings, dataDir, readFormer(driver))
  const before = await content()
  t.ok(before.length > 0)
  await t.rejects(startTestHub(t, settings, home), { message: refused })
  const stage = { HUB_PROJECT: 'hub', HUB_STAGE: 'test', HUB_DATA_DIR: dataDir }
  await t.rejects(openStopped({ ...stage, ...settings }, home), { message: refused }, 'as by an export')
  t.same(await content(), before)
})

t.test('one record of a kind that the release had is enough', async (t) => {
  const entries = readFormer('embedded')
  const kinds = [...new Set(entries.map(([key]) => key.slice(0, key.indexOf('/') + 1)))]
  // Both releases write these alike.
  const alike = ['credential/', 'subscription/', 'topic/', 'incoming/', 'time/']
  t.ok(alike.every((kind) => kinds.includes(kind)))
  for (const kind of kinds) {
    const store = await openStore(t)
    const put = entries.find(([key]) => key.startsWith(kind))
    await store.commit(put ? [{ put: put[0], value: contentOf(put[1]) }] : [])
    if (alike.includes(kind)) t.equal(await migrate(store, async () => []), true, kind)
    else
      await t.rejects(
        migrate(store, async () => []),
        { message: refused },
        kind,
      )
  }
})

/*
 * The files in `before-journal/` are stores of 3.0.0-beta.1 (commit 03cbc76; the records of webhooks: 9c1e16f). The
 * first line of a file describes the store. Each further line has a key and a stored value (event time included,
 * base64).
 */
function readFormer(driver: Driver): [key: string, stored: Buffer][] {
  const [, ...lines] = readFileSync(projectFile(`test/migrate/before-journal/${driver}.jsonl`), 'utf8').split(
    '\n',
  )
  return lines.filter(Boolean).map((line) => {
    const [key, stored] = JSON.parse(line)
    return [key, Buffer.from(stored, 'base64')]
  })
}

type Content = [key: string, content: string][]

/** Writes the entries as that release did. The answer reads all that is stored. */
async function fill(
  t: Test,
  settings: StoreSettings,
  dataDir: string,
  entries: [key: string, stored: Buffer][],
): Promise<() => Promise<Content>> {
  const { HUB_REDIS_URL: url } = settings
  if (url === undefined) {
    const withLevel = async (use: (db: ClassicLevel<string, Buffer>) => Promise<Content>) => {
      const db = new ClassicLevel<string, Buffer>(join(dataDir, 'store'), { valueEncoding: 'buffer' })
      return use(db).finally(() => db.close())
    }
    await withLevel(async (db) => {
      for (const [key, stored] of entries) await db.put(key, stored)
      return []
    })
    return () =>
      withLevel(async (db) => {
        const found = await db.iterator().all()
        return found.map(([key, stored]) => [key, stored.toString('base64')])
      })
  }
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  for (const [key, stored] of entries) {
    await client.hset('{hub:test}:values', key, stored)
    await client.zadd('{hub:test}:keys', 0, key)
  }
  await client.hset('{hub:test}:log-head', 'id', (await client.xadd('{hub:test}:log', '*', 'a', 'b')) ?? '')
  return async () => {
    const keys = (await client.keys('*')).sort()
    const dumped = keys.map(async (key): Promise<Content[number]> => {
      return [key, String((await client.dumpBuffer(key)).toString('base64'))]
    })
    return Promise.all(dumped)
  }
}
