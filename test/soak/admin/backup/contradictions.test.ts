import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { checkFile, linesOf, readFile } from '../../../../admin/backup/export-file.ts'
import type { StoredRecord } from '../../../../store/store.ts'
import { ask, fill } from '../../../admin/backup/filled.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { connect } from '../../../clients.ts'
import { control, station } from '../../../events.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'

const livestream = station()

onEachStore('an export that contradicts itself', async (t, store) => {
  const home = await temporaryDirectory(t)
  const full = await spawnHub(t, home)
  const filled = await fill(t, full, [livestream], { sessions: 1, credentials: 2, webhooks: 0 })
  const file = join(home, 'hub.export')
  await runHubctl(['--socket', full.adminSocket, 'export', file])
  await full.stop('SIGTERM')
  const { lastPosition } = await checkFile(file)
  const other = join(home, 'other.export')
  const node = await spawnHub(t, await temporaryDirectory(t), store)
  const tryImport = () => runHubctl(['--socket', node.adminSocket, 'import', other])

  await t.test('is refused where its last position is lower than that of a message', async (t) => {
    const { run } = await ask<{ run: string }>(node, 'import.outcome')
    for (const value of [undefined, '1', String(lastPosition - 1)]) {
      await rewrite(file, other, (record) =>
        record.key !== 'number' ? record : value && { key: 'number', value: Buffer.from(value) },
      )
      const answer = await tryImport()
      t.equal(answer.code, 1)
      t.match(answer.stderr, 'nothing was imported')
      t.match(answer.stderr, /contradicts itself: "[^"]+" has position \d+, and "number" is/)
      t.match(answer.stderr, `and "number" is ${value ?? 0}; expected "number" to be at least that`)
    }
    t.equal((await ask<{ run: string }>(node, 'import.outcome')).run, run, 'the node did not start again')
    t.same(await ask(node, 'credentials.list'), [])
    t.notOk(existsSync(join(dirname(node.adminSocket), 'import.offered')))
  })

  await t.test('is refused where a record has the name of another', async (t) => {
    await rewrite(file, other, ({ key, ...of }) => ({ ...of, key: key.replace(/^credential\/sub-/, '$&x') }))
    const answer = await tryImport()
    t.equal(answer.code, 1)
    t.match(answer.stderr, /"credential\/sub-x.* expected a JSON object whose "username" is that of the key/)
    t.same(await ask(node, 'credentials.list'), [])
  })

  await t.test('loses no event for a session that is ahead of it', async (t) => {
    await rewrite(file, other, ({ key, value, ...of }) => {
      if (!key.startsWith('session/')) return { key, value, ...of }
      const session = JSON.parse(String(value))
      const subscriptions = session.subscriptions.map(([filter, qos]: unknown[]) => [
        filter,
        qos,
        lastPosition + 4,
      ])
      const ahead = { ...session, upTo: lastPosition + 4, subscriptions }
      return { key, value: Buffer.from(JSON.stringify(ahead)), ...of }
    })
    t.match(await tryImport(), { code: 0 })
    const { client: studio } = await connect(t, node, filled.publisher)
    const names = ['a', 'b', 'c', 'd']
    const validUntil = new Date(Date.now() + 3600_000).toISOString()
    for (const name of names) {
      const event = control(livestream, { name, validUntil })
      await studio.publishAsync(`inbox/${livestream.institution.id}`, JSON.stringify(event), { qos: 1 })
    }
    const [clientId = ''] = filled.clientIds
    const { received } = await connect(t, node, filled.app, { clientId, clean: false })
    await received.until(({ json }) => json.name === 'd')
    t.same(
      received.all.map(({ json }) => json.name).filter((name) => names.includes(String(name))),
      names,
    )
  })
})

/** Copies an export. `change` returns what takes the place of a record: undefined leaves it out. */
async function rewrite(
  from: string,
  to: string,
  change: (record: StoredRecord) => StoredRecord | '' | undefined,
): Promise<void> {
  const about = await checkFile(from)
  const pages = async function* () {
    for await (const page of readFile(from)) yield page.flatMap((record) => change(record) || [])
  }
  const lines: string[] = []
  for await (const line of linesOf(about, pages())) lines.push(`${JSON.stringify(line)}\n`)
  await writeFile(to, gzipSync(lines.join('')))
}
