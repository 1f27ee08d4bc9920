import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { Test } from 'tap'
import type { TestHub } from './start-hub.ts'

export interface StreamEvent {
  event: string
  id?: string
  data: { livestreamId?: string; retained?: boolean; event?: Record<string, unknown> } & Record<
    string,
    unknown
  >
}

/** A reader of a stream, as an `EventSource` reads it. */
export type StreamReader = Awaited<ReturnType<typeof openStream>>

/** Opens a stream, for as long as the test lasts. It does not come back by itself. */
export async function openStream(
  t: Test,
  hub: Pick<TestHub, 'httpsPort' | 'caPath'>,
  path: string,
  {
    token,
    headers = {},
    from,
  }: {
    token?: string | undefined
    headers?: Record<string, string>
    /** The address of the reader. By default one of this host. */
    from?: string
  } = {},
) {
  const agent = new Agent({ ca: readFileSync(hub.caPath) })
  const sent = request({
    host: 'localhost',
    port: hub.httpsPort,
    path,
    agent,
    ...(from !== undefined && { localAddress: from, family: 4 }),
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
  })
  sent.on('error', () => undefined)
  t.teardown(() => {
    sent.destroy()
    agent.destroy()
  })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.setEncoding('utf8')
  const events: StreamEvent[] = []
  let retry: string | undefined
  let comments = 0
  let hasEnded = false
  let wake = () => {}
  const read = createEventParser({
    field(name, value) {
      if (name === '') comments++
      if (name === 'retry') retry = value
    },
    empty: () => t.fail('a block has no event: some libraries hand it on as a message without data'),
    event: (event) => events.push(event),
  })
  response.on('data', (piece: string) => {
    read(piece)
    wake()
  })
  response.on('error', () => undefined)
  response.once('close', () => {
    hasEnded = true
    wake()
  })

  return {
    status: response.statusCode,
    headers: response.headers,
    events,
    retry: () => Number(retry),
    comments: () => comments,
    hasEnded: () => hasEnded,
    /** Resolves when `holds`; the test ends if it never does. */
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await new Promise<void>((resolve) => (wake = resolve))
    },
    /** The events of one name so far. */
    named: (event: string) => events.filter((each) => each.event === event),
    lastId: () => events.findLast(({ id }) => id !== undefined)?.id,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => void sent.destroy(),
  }
}

/** Reads the text of a stream, in pieces. `field`: of each line; that of a comment has no name. `empty`: a block has no event. */
export function createEventParser(on: {
  field?: (name: string, value: string) => void
  empty?: () => void
  event: (event: StreamEvent) => void
}): (piece: string) => void {
  let text = ''
  let fields: Record<string, string> = {}
  return (piece) => {
    const lines = `${text}${piece}`.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== '') {
        const end = line.indexOf(':')
        const [name, value] = [line.slice(0, end), line.slice(end + 1).replace(/^ /, '')]
        fields[name] = value
        on.field?.(name, value)
        continue
      }
      const { event, id, data } = fields
      fields = {}
      if (event !== undefined && data !== undefined)
        on.event({ event, ...(id !== undefined && { id }), data: JSON.parse(data) })
      else on.empty?.()
    }
  }
}
