import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import type { Route } from '../../../bridge-https/routes/route.ts'
import { openClient } from '../../bridge-https/api.ts'
import { secured } from '../../bridge-https/raw.ts'
import { startRoutes } from '../../bridge-https/start-routes.ts'

const textBytes = 8 * 1024 * 1024
const shared = Buffer.alloc(textBytes, 'x')

t.test('who does not read an answer does not keep the connection', async (t) => {
  const hub = await startListener(t, { maxConnections: 1, stalledMs: 3_000 })
  const options = { host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) }

  const stalled = await secured(connect(options))
  t.teardown(() => stalled.destroy())
  stalled.pause()
  stalled.write('GET /text HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await t.rejects(secured(connect(options)), 'it has the only place')
  let next: Awaited<ReturnType<typeof secured>> | undefined
  while (!next) next = await secured(connect(options)).catch(() => undefined)
  t.pass('the place is free again')
  next.destroy()

  const send = openClient(t, hub)
  let answer: Awaited<ReturnType<typeof send>> | undefined
  while (!answer) answer = await send('GET', '/text').catch(() => undefined)
  t.equal(answer.text.length, textBytes, 'who reads gets all of it')
})

t.test('of many answers that nobody reads, the oldest end', async (t) => {
  const hub = await startListener(t, { maxConnections: 30, stalledMs: 60_000 })
  /** Each request has its own connection. Nothing of the answers is read. */
  const ask = async (path: string, count: number): Promise<IncomingMessage[]> => {
    const answers: IncomingMessage[] = []
    for (let number = 0; number < count; number++) {
      const sent = get({
        host: 'localhost',
        port: hub.httpsPort,
        ca: readFileSync(hub.caPath),
        path,
        agent: false,
      })
      const [answer] = await once(sent, 'response')
      answers.push(answer)
    }
    return answers
  }
  const isWhole = (answer: IncomingMessage) =>
    buffer(answer).then(
      ({ length }) => length === textBytes,
      () => false,
    )

  // All unread answers together may take 64 MiB. Eight of these answers fit.
  const texts = await ask('/text', 10)
  const values = await ask('/value', 1)
  const same = await ask('/shared', 10)
  t.same(await Promise.all(texts.map(isWhole)), [false, false, false, ...Array(7).fill(true)])
  t.same(await Promise.all(values.map(({ headers }) => headers['content-type'])), [
    'application/json; charset=utf-8',
  ])
  t.same(await Promise.all(values.map(isWhole)), [true])
  t.same(await Promise.all(same.map(isWhole)), Array(10).fill(true), 'one that many share takes no room')
  t.same(
    await Promise.all((await ask('/text', 8)).map(isWhole)),
    Array(8).fill(true),
    'the room is free again',
  )
})

/** Starts a listener with answers larger than the buffers of a connection. */
function startListener(t: Test, of: { maxConnections: number; stalledMs: number }) {
  const base = { method: 'GET', tag: 'Test', summary: '', answers: {} } as const
  const routes: Route[] = [
    {
      ...base,
      path: '/text',
      id: 'text',
      handle: () => ({ status: 200, body: shared.toString(), headers: { 'content-type': 'text/plain' } }),
    },
    // As JSON, a list with one text has four characters more than the text.
    {
      ...base,
      path: '/value',
      id: 'value',
      handle: () => ({ status: 200, body: [shared.toString('utf8', 4)] }),
    },
    { ...base, path: '/shared', id: 'shared', handle: () => ({ status: 200, body: shared }) },
  ]
  return startRoutes(t, { ...of, routes })
}
