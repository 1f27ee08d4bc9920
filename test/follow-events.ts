import { once } from 'node:events'
import { request } from 'node:http'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import type { EventRow } from '../journal/history/event-row.ts'

/** Follows events like `hubctl events tail`. Each call of the returned function resolves with the next event. */
export async function followEvents(
  t: Test,
  { adminSocket }: { adminSocket: string },
  args: Record<string, unknown> = {},
): Promise<() => Promise<EventRow>> {
  const sending = request({ socketPath: adminSocket, path: '/events.tail', method: 'POST', agent: false })
  sending.end(JSON.stringify({ args, who: 'tester' }))
  t.teardown(() => sending.destroy())
  const [response] = await once(sending, 'response')
  const lines = createInterface({ input: response })[Symbol.asyncIterator]()
  return async () => JSON.parse((await lines.next()).value)
}
