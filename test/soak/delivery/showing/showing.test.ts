import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import t from 'tap'
import { first, openOutput, second, startTitleServer } from '../../../output-receiver.ts'
import { comes } from '../../../until.ts'

t.jobs = 4

const query = '/{name}?t={title}'

t.test('an output shows what plays, of any type, by event time', async (t) => {
  const server = await startTitleServer(t)
  const { hub, play, lane, start } = await openOutput(t, `http://127.0.0.1:${server.port}${query}`)
  const last = (title: string) => hub.until(async () => server.texts('first').at(-1) === title)
  await play('Music', { start: ago(60) })
  await last('Music')
  await play('News', { type: 'news', start: ago(30) })
  await last('News')
  await play('Older', { start: ago(90) })
  const from = Date.now() + 1_500
  await play('Ahead', { start: new Date(from).toISOString() })
  await last('Ahead')
  t.ok(Date.now() >= from, 'not before its start')
  t.strictSame(server.texts('first'), ['Music', 'News', 'Ahead'])
  await hub.until(async () => (await lane()).acknowledged === 3)
  t.match(
    await lane(),
    { state: 'shown', title: 'Ahead', stale: 1, failed: 0 },
    'the late older event is passed over',
  )
  t.match(await lane('second'), { state: 'nothing', title: null })
  t.equal(server.texts('second').length, 0)

  await hub.close()
  const again = await start()
  await again.until(async () => server.texts('first').length === 4)
  t.equal(server.texts('first').at(-1), 'Ahead', 'after a start, what plays is sent once more')
})

t.test('the list of outputs says which livestream nobody knows', async (t) => {
  const livestreams = { [first.id]: 'first', 'urn:org:permanent-livestream:0000000000000bad': 'typo' }
  const { lane } = await openOutput(t, `http://127.0.0.1:9${query}`, { livestreams })
  t.match(await lane('typo'), { state: 'nothing', lastReason: /neither the feed nor a topic/ })
  t.match(await lane('first'), { state: 'nothing', lastReason: null })
})

t.test('after an outage only what plays then is delivered', async (t) => {
  const server = await startTitleServer(t)
  server.behave((_, response) => response.writeHead(503).end())
  const { hub, play, lane } = await openOutput(t, `http://127.0.0.1:${server.port}${query}`)
  await play('One')
  await hub.until(async () => (await lane()).failed > 0)
  for (const title of ['Two', 'Three', 'Four']) await play(title)
  await hub.until(async () => (await lane()).stale === 3)
  t.match(await lane(), { state: 'retrying', lastReason: 'answered 503', title: null })
  server.behave((_, response) => response.end())
  const before = server.came.length
  await hub.until(async () => (await lane()).state === 'shown')
  t.strictSame(
    server.came.slice(before).map(({ text }) => text),
    ['Four'],
  )
  const log = await hub.ask<{ result: string; count?: number }[]>('outputs.log', {
    name: 'web',
    livestream: first.id,
  })
  t.match(log[0], { result: 'acknowledged', title: 'Four' })
  // An attempt may have failed since the stretch began.
  const stale = log.filter(({ result }) => result === 'stale')
  t.equal(stale.length, 1, 'one line for a stretch')
  t.match(stale, [{ count: 3 }])
})

t.test('a livestream that hangs holds back only itself', async (t) => {
  const server = await startTitleServer(t)
  server.behave(({ name }, response) => {
    if (name === 'second') response.end()
  })
  const { hub, play } = await openOutput(t, `http://127.0.0.1:${server.port}${query}`)
  await play('Hangs')
  await hub.until(async () => server.texts('first').length === 1)
  for (const title of ['One', 'Two', 'Three']) {
    await play(title, {}, second)
    await hub.until(async () => server.texts('second').at(-1) === title)
  }
  t.equal(server.texts('first').length, 1, 'never two at once')
})

t.test('a title is shown after the delay of its output', async (t) => {
  const server = await startTitleServer(t)
  const { hub, play } = await openOutput(t, `http://127.0.0.1:${server.port}${query}`, { delay: 2_000 })
  const began = performance.now()
  await play('First', { start: ago(10) })
  await hub.until(async () => server.texts('first').length === 1)
  t.ok((server.came[0]?.at ?? 0) - began >= 1_950, 'not before')
  await play('Second')
  await play('Third')
  await hub.until(async () => server.texts('first').at(-1) === 'Third')
})

t.test('the idle text follows an element that has ended', async (t) => {
  const server = await startTitleServer(t)
  const url = `http://127.0.0.1:${server.port}/{name}?t={title}&type={type}`
  const { hub, play, lane } = await openOutput(t, url, { idle: 'Küstenfunk 1' })
  const end = performance.now() + 1_000
  await play('Short', { length: 1 })
  await hub.until(async () => server.texts('first').at(-1) === 'Küstenfunk 1')
  t.ok((server.came.at(-1)?.at ?? 0) - end > 5_000, 'a successor may be late')
  await hub.until(async () => (await lane()).state === 'idle text')
  await play('Next')
  await hub.until(async () => server.texts('first').at(-1) === 'Next')
  t.match(await lane(), { stale: 0 })
})

t.test('with maxAge in seconds an older element is not sent', async (t) => {
  const server = await startTitleServer(t)
  server.behave((_, response) => response.writeHead(500).end())
  const { hub, play, lane } = await openOutput(t, `http://127.0.0.1:${server.port}${query}`, { maxAge: 2 })
  await play('Old')
  await hub.until(async () => (await lane()).stale === 1)
  server.behave((_, response) => response.end())
  const before = server.came.length
  // On a busy machine an element may be two seconds old before it is sent.
  for (let nth = 1; server.came.length === before; nth++) {
    await play(`New ${nth}`)
    await comes(() => server.came.length > before, 2_000)
  }
  t.match(server.came.at(-1)?.text, /^New/)
  t.equal(server.came.length, before + 1)
})

t.test('answers without end, with huge headers or interim answers end the attempt', async (t) => {
  const floods: [what: string, bytes: string, reason: RegExp | null][] = [
    ['body', 'HTTP/1.1 200 OK\r\n\r\n', null],
    ['headers', 'HTTP/1.1 200 OK\r\n', /Header overflow/],
    ['interim answers', '', /interim answers/],
    ['no HTTP', 'nonsense', /Parse Error/],
  ]
  for (const [what, head, reason] of floods) {
    const line =
      what === 'interim answers' ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : `x-flood: ${'x'.repeat(1_000)}\r\n`
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.resume()
      const flood = setInterval(() => socket.write(line.repeat(20)), 1)
      socket.on('close', () => clearInterval(flood))
      socket.write(head)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { hub, play, lane } = await openOutput(t, `http://127.0.0.1:${port}${query}`)
    await play('Flood')
    await hub.until(async () => (await lane()).acknowledged + (await lane()).failed > 0)
    const { lastReason, acknowledged } = await lane()
    if (reason) t.match(lastReason, reason, what)
    else t.equal(acknowledged, 1, what)
    await hub.close()
    server.close()
  }
})

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString()
}
