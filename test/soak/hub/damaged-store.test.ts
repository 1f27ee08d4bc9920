import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { AuditEntry } from '../../../admin/audit.ts'
import { openApi } from '../../bridge-https/api.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

interface Status {
  store: { driver: string; ok: boolean; problem: string | null }
}

async function startDamaged(t: Parameters<typeof startTestHub>[0], damage: (path: string) => Promise<void>) {
  const home = await temporaryDirectory(t)
  const before = await startTestHub(t, {}, home)
  const { username } = await before.subscriber('radio/#')
  await before.close()
  await damage(join(home, 'data', 'store'))
  const hub = await startTestHub(t, {}, home)
  return { hub, home, username, health: (await openApi(t, hub)).call('GET', '/health') }
}

t.test('a store that can be repaired is, and the node is healthy', async (t) => {
  const { hub, username, health } = await startDamaged(t, (path) => rm(join(path, 'CURRENT')))
  t.match(await hub.ask('credentials.list'), [{ username }])
  t.match(await health, { status: 200, json: { status: 'ok', store: true } })
  t.match(
    hub.lines.find(({ msg }) => String(msg).startsWith('the store was damaged')),
    { level: 50, entries: Number, movedTo: /store\.damaged-/, msg: /it is repaired/ },
  )
  await t.rejects(hub.ask('store.accept'), { message: /not replaced: there is nothing to accept/ })
})

t.test('a store that stays lost makes the node unhealthy until an operator accepts it', async (t) => {
  const { hub, home, health } = await startDamaged(t, async (path) => {
    for (const name of await readdir(path)) {
      if (/ldb$|log$|MANIFEST/.test(name)) await writeFile(join(path, name), Buffer.alloc(3000, 'q'))
    }
  })
  t.match(await health, { status: 503, json: { status: 'unavailable', store: 'replaced', feed: true } })
  t.match(
    hub.lines.find(({ level }) => level === 60),
    { msg: /starts with an empty one/, reason: String, movedTo: String },
  )
  await hub.close()

  const again = await startTestHub(t, {}, home)
  const api = await openApi(t, again)
  t.match(await api.call('GET', '/health'), { status: 503, json: { store: 'replaced' } }, 'over a restart')
  const status = await again.ask<Status>('status')
  t.match(status.store, { driver: 'embedded', ok: false, problem: /replaced by an empty one.*hubctl store/ })
  t.match(status.store, { isReplaced: true })
  t.match(await again.subscriber('radio/#'), { username: String }, 'it works meanwhile')
  t.match(await again.ask('store.accept'), { accepted: true, movedTo: /store\.damaged-/ })
  t.match(await api.call('GET', '/health'), { status: 200, json: { status: 'ok', store: true } })
  t.match((await again.ask<Status>('status')).store, { ok: true, problem: null })
  t.match((await again.ask<AuditEntry[]>('audit')).at(-1), { action: 'store.accept', target: /damaged-/ })
  await again.close()
  const last = await startTestHub(t, {}, home)
  t.match((await last.ask<Status>('status')).store, { ok: true }, 'and stays accepted')
})
