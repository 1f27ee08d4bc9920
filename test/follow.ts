import { EventEmitter, once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import type { TraceLine } from '../broker/packet-trace.ts'
import type { EventRow } from '../journal/history/event-row.ts'

/** Follows a client like `hubctl trace`. Resolves with its lines so far, once the trace has begun. */
export async function followPackets(
  t: Test,
  hub: { adminSocket: string },
  clientId: string,
  seconds = 60,
): Promise<{ lines: TraceLine[]; until(is: (line: TraceLine) => boolean): Promise<TraceLine> }> {
  const response = await openLines(t, hub, '/trace', { clientId, for: seconds })
  const lines: TraceLine[] = []
  const arrived = new EventEmitter().setMaxListeners(0)
  createInterface({ input: response })
    .on('line', (text) => {
      lines.push(JSON.parse(text))
      arrived.emit('line')
    })
    // The test ends before the trace.
    .on('error', () => undefined)
  const until = async (is: (line: TraceLine) => boolean) => {
    for (;;) {
      const found = lines.find(is)
      if (found) return found
      await once(arrived, 'line')
    }
  }
  await until(({ what }) => what === 'trace')
  return { lines, until }
}

/** Follows events like `hubctl events tail`. Each call of the returned function resolves with the next event. */
export async function followEvents(
  t: Test,
  { adminSocket }: { adminSocket: string },
  args: Record<string, unknown> = {},
): Promise<() => Promise<EventRow>> {
  const response = await openLines(t, { adminSocket }, '/events.tail', args)
  const lines = createInterface({ input: response })[Symbol.asyncIterator]()
  return async () => JSON.parse((await lines.next()).value)
}

/** Gives a command that answers line by line. */
export async function openLines(
  t: Test,
  { adminSocket }: { adminSocket: string },
  path: string,
  args: object,
): Promise<IncomingMessage> {
  const sending = request({ socketPath: adminSocket, path, method: 'POST', agent: false })
  sending.end(JSON.stringify({ args, who: 'tester' }))
  t.teardown(() => sending.destroy())
  const [response] = await once(sending, 'response')
  return response
}
