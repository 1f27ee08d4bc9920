import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { checkFile } from '../../../../admin/backup/export-file.ts'
import { presentFormat } from '../../../../store/stored-value.ts'
import { ask, fill, isAllThere } from '../../../admin/backup/filled.ts'
import { runHubctl } from '../../../cli/run-hubctl.ts'
import { station } from '../../../events.ts'
import { startRedis } from '../../../redis-server.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { temporaryDirectory } from '../../../start-hub.ts'

const livestreams = [station()]
const size = { sessions: 1, credentials: 2, webhooks: 0 }

t.test('a backup through the socket of a node', async (t) => {
  const home = await temporaryDirectory(t)
  const full = await spawnHub(t, home)
  const filled = await fill(t, full, livestreams, size)
  const file = join(home, 'hub.export')
  await runHubctl(['--socket', full.adminSocket, 'export', file])
  const freshHome = await temporaryDirectory(t)
  const fresh = await spawnHub(t, freshHome)
  const bad = join(home, 'bad.export')
  const text = gunzipSync(await readFile(file)).toString()

  const tryImport = (of = bad, node = fresh) => runHubctl(['--socket', node.adminSocket, 'import', of])
  const repack = (lines: string) => writeFile(bad, gzipSync(lines))

  t.test('is refused where it is no export, damaged, not whole, or of another release', async (t) => {
    await writeFile(bad, 'text')
    t.match(await tryImport(), { code: 1, stderr: /no whole gzip file/ })
    await repack('{"some":"JSON"}\n')
    t.match(await tryImport(), { code: 1, stderr: /no export of a now-playing hub/ })
    await repack(text.replace('"from":"embedded"', '"from":"redis"'))
    t.match(await tryImport(), { code: 1, stderr: /its checksum is not that of its content/ })
    await repack(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1))
    t.match(await tryImport(), { code: 1, stderr: /its end is missing/ })
    await repack(`${text}[]\n`)
    t.match(await tryImport(), { code: 1, stderr: /there is more behind its end/ })
    await repack(text.replace(`"format":${presentFormat}`, `"format":${presentFormat + 1}`))
    const stderr = new RegExp(`another release .* has written it: a store of format ${presentFormat + 1}`)
    t.match(await tryImport(), { code: 1, stderr })
    await copyFile(file, bad)
    await appendFile(bad, 'x')
    t.match(await tryImport(), { code: 1 })
    t.match(await tryImport(join(home, 'missing')), { code: 1, stderr: /ENOENT/ })
    t.same(await ask(fresh, 'credentials.list'), [], 'nothing was changed')
    t.notOk(existsSync(join(freshHome, 'data', 'import.offered')), 'nothing is left behind')
  })

  t.test('of a store of format 2 is read', async (t) => {
    const former = text.replace(`"format":${presentFormat}`, '"format":2')
    const lines = former.slice(0, former.lastIndexOf('\n', former.length - 2) + 1)
    const sha256 = createHash('sha256').update(lines).digest('hex')
    await repack(former.replace(/"sha256":"\w+"/, `"sha256":"${sha256}"`))
    t.match(await checkFile(bad), { sha256 })
  })

  t.test('is refused where the store is not empty', async (t) => {
    const answer = await tryImport(file, full)
    t.match(answer, { code: 1, stderr: /the store is not empty: it has credentials, users, topics, events/ })
    t.match(await ask(full, 'credentials.list'), { length: 2 })
  })

  t.test('goes to no other machine', async (t) => {
    const answer = await runHubctl(['--url', 'https://localhost:1', 'export', bad])
    t.match(answer, { code: 2, stderr: /on the machine of a node only/ })
  })

  t.test('of nodes that are stopped is taken in by the next start', async (t) => {
    const env = (at: string) => ({ env: { HUB_DATA_DIR: join(at, 'data') } })
    t.match(await runHubctl(['export', bad, '--stopped'], env(home)), {
      code: 1,
      stderr: /in use by another process/,
    })
    t.match(await runHubctl(['import', file, '--stopped'], env(freshHome)), {
      code: 1,
      stderr: /a node runs on/,
    })
    await Promise.all([full, fresh].map((node) => node.stop('SIGTERM')))
    t.match(await runHubctl(['export', bad, '--stopped'], env(home)), { code: 0 })
    t.match(await runHubctl(['import', bad, '--stopped'], env(freshHome)), {
      code: 0,
      stdout: /The next start/,
    })
    const next = await spawnHub(t, freshHome)
    t.ok(next.messages.includes('the export is taken in'))
    await isAllThere(t, next, filled)
  })
})

t.test('an export goes to no Redis that other nodes use', async (t) => {
  const { url } = await startRedis(t)
  const env = { HUB_REDIS_URL: url, HUB_PUBLIC_URL: 'https://hub.example' }
  const [home = '', other = ''] = await Promise.all([temporaryDirectory(t), temporaryDirectory(t)])
  const node = await spawnHub(t, home, env)
  const file = join(home, 'hub.export')
  t.match(await runHubctl(['--socket', node.adminSocket, 'export', file]), { code: 0 })
  const second = await spawnHub(t, other, env)
  const answer = await runHubctl(['--socket', node.adminSocket, 'import', file])
  t.match(answer, { code: 1, stderr: /the store is not empty: it has nodes that use it \(/ })

  const settings = { env: { HUB_DATA_DIR: join(home, 'data'), HUB_REDIS_URL: url } }
  t.match(await runHubctl(['export', file, '--stopped'], settings), { code: 1, stderr: /nodes use it \(/ })
  await Promise.all([node, second].map((one) => one.stop('SIGTERM')))
  const stopped = await runHubctl(['export', file, '--stopped'], settings)
  t.match(stopped, { code: 0 }, 'with stopped nodes, the settings of the store are enough')
})
