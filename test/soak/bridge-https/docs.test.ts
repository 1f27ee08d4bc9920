import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { httpsErrors } from '../../../bridge-https/answer.ts'
import { maxPayloadBytes } from '../../../validator/decide.ts'
import { openApi } from '../../bridge-https/api.ts'
import { codeBlock, readPage } from '../../documentation.ts'
import { playing, station } from '../../events.ts'
import { hubctlCommand, projectFile } from '../../root.ts'
import { startTestHub } from '../../start-hub.ts'

const page = readFileSync(projectFile('docs/https.md'), 'utf8')
const others = ['migration.md', 'webhooks.md', 'plugins.md', 'operators.md'].map((name) =>
  readFileSync(projectFile(`docs/${name}`), 'utf8'),
)

t.test('the page has every error code of this door, and no other', async (t) => {
  const rows = [...page.matchAll(/^\| `([a-z]+\.[a-z]+)` \| (\d{3}) \|$/gm)].map(([, code]) => code)
  t.same(rows.sort(), Object.keys(httpsErrors).sort())
  t.match(page, maxPayloadBytes.toLocaleString('en'))
})

t.test('the page has every status that the description has, and routes that exist', async (t) => {
  const hub = await startTestHub(t)
  const { description } = await openApi(t, hub)
  const statuses = new Set(description.operations.flatMap((operation) => operation.statuses))
  const rows = [...page.matchAll(/^\| (\d{3}) \| .* \| (?:yes)? ?\|$/gm)].map(([, status]) => status)
  t.same(rows.sort(), [...statuses].filter((status) => Number(status) >= 400).sort())
  const routes = description.operations.map(({ method, path }) => `${method} ${path}`)
  for (const [, route = ''] of [page, ...others]
    .join('\n')
    .matchAll(/`((?:GET|POST|PUT|DELETE) \/[^`]*)`/g)) {
    t.ok(routes.includes(route), route)
  }
  for (const route of routes.filter((one) => / \/(subscriptions|pubsub)/.test(one))) {
    t.ok(page.includes(`\`${route}\``), `${route} is on the page`)
  }
})

t.test('the check of an event by its schema, as the page for publishers has it', async (t) => {
  const hub = await startTestHub(t)
  await symlink(projectFile('node_modules'), join(hub.home, 'node_modules'))
  const script = codeBlock(readPage('publishers.md'), 'bash', '/schemas/TrackEvent.json')
    .replace('$HOST:8443', `$HOST:${hub.httpsPort}`)
    .replace('/tmp/event.json', 'event.json')
  const env = { ...process.env, HOST: 'localhost', CA: hub.caPath }
  const check = async (event: object) => {
    await writeFile(join(hub.home, 'event.json'), JSON.stringify(event))
    return promisify(execFile)('bash', ['-c', script], { cwd: hub.home, env })
  }
  t.match(await check(playing(station())), { stdout: 'valid\n' })
  const wrong = check(playing(station(), { length: 0 }))
  await t.rejects(wrong, { code: 1, stderr: /^\/length must be / })
  const incomplete = check(playing(station(), { services: [{}] }))
  await t.rejects(incomplete, { code: 1, stderr: /missingProperty: 'externalId'/ })
})

t.test('a reader is made and shown as the page has it', async (t) => {
  const hub = await startTestHub(t)
  // `npm run -s hubctl -- …`, as it is started here.
  const hubctl = hubctlCommand.map((word) => `'${word}'`).join(' ')
  const npm = `npm() { shift 4; ${hubctl} --socket "$SOCKET" "$@"; }`
  const script = codeBlock(page, 'bash', '--role reader')
  const env = {
    ...process.env,
    SOCKET: hub.adminSocket,
    CA: hub.caPath,
    BASE: `https://localhost:${hub.httpsPort}`,
  }
  const run = promisify(execFile)('bash', ['-c', `${npm}\n${script}`], { env })
  t.match(await run, { stdout: /^\{"institutions":\[\{"id":"urn:org:institution:/ })
})
