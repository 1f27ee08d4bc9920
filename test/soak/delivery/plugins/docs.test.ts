import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { enabledTargets } from '../../../../delivery/plugins/targets.ts'
import { type HubEvent, kindByName } from '../../../../event/kind.ts'
import { connectPublisher } from '../../../clients.ts'
import { codeBlock, readPage } from '../../../documentation.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/*
 * Runs the examples of docs/plugins.md, and checks the statements of that page.
 */
const page = readPage('plugins.md')
const [own = ''] = institutions

t.test('the example of a driver takes items to its platform', { timeout: 120_000 }, async (t) => {
  const platform = await startPlatform(t)
  const home = await temporaryDirectory(t)
  await writeFile(join(home, 'archive.mjs'), codeBlock(page, 'js', 'createDriver'))
  const { plugins } = JSON.parse(codeBlock(page, 'json', '"driver"'))
  const [, archive] = plugins
  t.equal(archive.type, 'archive')
  const hub = await startConfigured(t, home, { plugins: [{ ...archive, endpoint: platform.url }] })
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const publish = (title: string, plugins: object[]) =>
    publisher.publish(playing(station(), { title, plugins }))
  const shown = async () => {
    const queues =
      await hub.ask<{ name: string; pending: number; lastReason: string | null }[]>('queues.list')
    return queues.find(({ name }) => name === 'plugins.archive')
  }

  // Its log: the driver starts beside the hub.
  await hub.until(async () =>
    hub.lines.some(({ msg, plugin }) => msg === 'archive is ready' && plugin === 'archive'),
  )
  platform.answers.push(503)
  const report = await publish('One', [{ type: 'archive' }])
  t.notOk('warnings' in report)
  await publish('Not for it', [])
  await publish('Switched off', [{ type: 'archive', isDeactivated: true }])
  await publish('Two', [{ type: 'archive' }])
  await platform.until(3)
  t.match(platform.received[0], {
    headers: { 'x-api-key': archive.apiKey, 'idempotency-key': report.id },
    body: { title: 'One', artist: 'Mira Hollund', seconds: 180, stations: [station().externalId], by: own },
  })
  t.same(
    platform.received.map(({ body }) => body.title),
    ['One', 'One', 'Two'],
  )
  t.equal(platform.received[1]?.headers['idempotency-key'], report.id, 'the same for a repetition')
  await hub.until(async () => (await shown())?.pending === 0)
  t.match(await hub.ask('queues.attempts', { name: 'plugins.archive' }), [
    { status: null, reason: null },
    { messageId: report.id, status: null, reason: null },
    { messageId: report.id, status: 503, reason: 'the archive answered 503' },
  ])

  const masked = await hub.ask<{ plugins: { apiKey: string }[] }>('config')
  t.equal(masked.plugins[0]?.apiKey, '***')
  const warned = await publish('Unknown', [{ type: 'nobody' }, { type: 'nobody', isDeactivated: true }])
  t.match(warned, {
    outcome: 'published',
    errors: [],
    warnings: [{ path: '.plugins.0.type', errorCode: 'plugin.unknown' }],
  })
  t.equal(warned.warnings?.length, 1)
})

t.test('an item as the webhook driver posts it', async (t) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const { plugins } = JSON.parse(codeBlock(page, 'json', '"driver"'))
  const [dts] = plugins
  const hub = await startConfigured(
    t,
    home,
    { plugins: [{ ...dts, url: receiver.url() }] },
    pushing(receiver),
  )
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const report = await publisher.publish(playing(station(), { plugins: [{ type: 'dts', id: '42' }] }))
  await receiver.until((received) => received.length === 1)
  const [pushed] = receiver.received
  const example = JSON.parse(codeBlock(page, 'json', '"action"'))
  t.match(pushed?.body, {
    action: example.action,
    plugin: example.plugin,
    institutionId: own,
    event: { id: report.id, event: example.event.event, type: example.event.type },
  })
  t.same(Object.keys(pushed?.body ?? {}), Object.keys(example))
  t.equal(pushed?.headers['hub-message-id'], report.id)
  const token = String(pushed?.headers.authorization).replace('Bearer ', '')
  t.match(decodeJwt(token), { aud: receiver.url(), email: 'publisher@hub.example' })
})

t.test('the table of which events a target gets', async (t) => {
  const rows = [...page.matchAll(/^\| `(\[.*\])` \| (.*) \| (yes|no) \| (yes|no) \|$/gm)]
  t.equal(rows.length, 9)
  for (const [, entries = '', what = '', automatic, asked] of rows) {
    const kind = kindByName.get(`de.org.hub.v1.radio.track.${what.startsWith('next') ? 'next' : 'playing'}`)
    if (!kind) throw new Error(what)
    const type = what.includes('another') ? 'news' : 'music'
    // The events of the rows for `next` are music, too. So only their kind can keep a target with `autoEnable` from
    // getting them.
    const event = playing(station(), { type, plugins: JSON.parse(entries) }) as unknown as HubEvent
    const gets = (autoEnable: boolean) =>
      enabledTargets(event, kind, [{ type: 'T', autoEnable, url: 'https://t.example' }]).length === 1
    t.same([gets(true), gets(false)], [automatic === 'yes', asked === 'yes'], `${entries} ${what}`)
  }
})

/** A platform with an HTTP API that answers with the statuses in `answers`, then with 200. */
async function startPlatform(t: Test) {
  const answers: number[] = []
  const received: { headers: IncomingHttpHeaders; body: Record<string, unknown> }[] = []
  const waiting = new Set<() => void>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    response.writeHead(answers.shift() ?? 200).end('{}')
    for (const check of waiting) check()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/entries`,
    answers,
    received,
    until: (count: number) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (received.length >= count) resolve()
        }
        waiting.add(check)
        check()
      }),
  }
}

/** Starts a node that reads these settings from a file in its working directory. */
async function startConfigured(t: Test, home: string, settings: object, env: Record<string, string> = {}) {
  const file = join(home, 'hub.json')
  await writeFile(file, JSON.stringify(settings))
  return startTestHub(t, { ...env, HUB_CONFIG: file }, home)
}
