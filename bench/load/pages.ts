import { Agent, request } from 'node:https'
import { connectAsync, type MqttClient } from 'mqtt'
import { answer } from '../answer.ts'

/* A process with pages as browsers have them open: on-air pages over WebSocket, and consoles that ask the node. */

interface Door {
  port: number
  ca: string
}

type Question = { command: string; args?: Record<string, unknown>; everyMs: number }

/** The consoles open within this time, milliseconds. */
const openingMs = 3_000

/** The questions of every console, and those of each view while somebody looks at it. */
const ofEach: Question[] = [{ command: 'status', everyMs: 10_000 }]
const views: ((livestream: string) => Question[])[] = [
  // The overview.
  () => [
    { command: 'trend', everyMs: 10_000 },
    { command: 'queues.list', everyMs: 10_000 },
  ],
  // The live tail.
  () => [{ command: 'events.tail', args: { after: 'now' }, everyMs: 2_000 }],
  // A livestream.
  (livestream) => [
    { command: 'events.list', args: { livestream, limit: 200 }, everyMs: 5_000 },
    { command: 'retained.list', args: { filter: `radio/${livestream}/#` }, everyMs: 5_000 },
    { command: 'subscriptions.list', args: { livestream }, everyMs: 15_000 },
  ],
  // The webhooks.
  () => [
    { command: 'queues.list', everyMs: 5_000 },
    { command: 'subscriptions.list', everyMs: 10_000 },
  ],
  // The clients.
  () => [{ command: 'clients.list', everyMs: 5_000 }],
]

const pages: MqttClient[] = []
const timers: NodeJS.Timeout[] = []
const seen = { messages: 0, answers: 0, failures: 0 }
const agent = new Agent({ keepAlive: true })

export const commands = {
  /** Opens so many pages and consoles of a user who may read and operate. */
  async open({
    door,
    token,
    onAir,
    consoles,
    livestreams,
  }: {
    door: Door
    token: string
    onAir: number
    consoles: number
    livestreams: readonly string[]
  }) {
    // One credential for all pages: a user may ask for only a few a minute.
    const { username, password } = JSON.parse(await post(door, '/auth/mqtt', {}, token))
    for (let nth = 0; nth < onAir; nth++) {
      const page = await connectAsync(`wss://localhost:${door.port}/mqtt`, {
        ...{ username, password, clientId: `page-bench-${nth}`, ca: door.ca, protocolVersion: 4 },
      })
      page.on('message', () => {
        seen.messages++
      })
      await page.subscribeAsync('radio/#')
      pages.push(page)
    }
    for (let nth = 0; nth < consoles; nth++) {
      const view = views[nth % views.length]
      const livestream = livestreams[nth % livestreams.length] ?? ''
      for (const { command, args: first = {}, everyMs } of [...ofEach, ...(view?.(livestream) ?? [])]) {
        let args = first
        const askNow = () =>
          void post(door, `/operate/${command}`, args, token).then((text) => {
            args = { ...args, ...sinceThen(command, JSON.parse(text).result) }
            seen.answers++
          }, failed)
        const begin = () => {
          askNow()
          timers.push(setInterval(askNow, everyMs))
        }
        // People do not open their consoles in the same moment.
        timers.push(setTimeout(begin, (openingMs * nth) / consoles))
      }
    }
  },

  async close() {
    for (const timer of timers.splice(0)) clearInterval(timer)
    await Promise.all(pages.splice(0).map((page) => page.endAsync()))
    const was = { ...seen }
    Object.assign(seen, { messages: 0, answers: 0, failures: 0 })
    return was
  },
}

/** A view asks only for events that it does not have yet. */
function sinceThen(
  command: string,
  { next, events }: { next?: number; events?: { position: number }[] },
): Record<string, unknown> {
  if (command === 'events.tail') return { after: next }
  const [newest] = command === 'events.list' ? (events ?? []) : []
  return newest ? { since: newest.position + 1 } : {}
}

function failed(): void {
  seen.failures++
}

function post({ port, ca }: Door, path: string, body: object, token: string): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: 'localhost', port, path, method: 'POST', ca, headers, agent },
      async (answer) => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        const text = Buffer.concat(chunks).toString()
        if ((answer.statusCode ?? 500) < 300) resolve(text)
        else reject(new Error(`${path}: ${answer.statusCode} ${text}`))
      },
    )
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}

answer(commands)
