import t from 'tap'
import { openStream } from '../../event-stream.ts'
import { startTestHub } from '../../start-hub.ts'

t.test('a quiet stream gets a comment, and stays', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const reader = await openStream(t, hub, '/stream')
  await reader.until(() => reader.events.at(-1)?.event === 'ready')
  t.equal(reader.comments(), 0)
  await reader.until(() => reader.comments() === 1)
  t.notOk(reader.hasEnded())
})
