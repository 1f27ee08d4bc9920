import t from 'tap'
import { openOutput, startTitleServer } from '../../../output-receiver.ts'

t.test('with maxAge in seconds an element grows old, also after the clock jumped ahead', async (t) => {
  const { now } = Date
  let ahead = 0
  Date.now = () => now() + ahead
  t.teardown(() => {
    Date.now = now
  })
  const server = await startTitleServer(t)
  server.behave((_, response) => response.writeHead(500).end())
  const { hub, play, lane } = await openOutput(t, `http://127.0.0.1:${server.port}/{name}?t={title}`, {
    maxAge: 2,
  })
  ahead = 3_600_000
  await play('Old')
  await hub.until(async () => (await lane()).failed > 0)
  await hub.until(async () => (await lane()).stale === 1)
  server.behave((_, response) => response.end())
  const before = server.came.length
  await play('New')
  await hub.until(async () => server.texts('first').at(-1) === 'New')
  t.equal(server.came.length, before + 1)
})
