import { once } from 'node:events'
import { Agent } from 'node:https'
import { WebSocket } from 'ws'
import { answer } from '../answer.ts'
import { type HttpsDoor, send } from '../user.ts'
import {
  connectPacket,
  createPacketCutter,
  disconnectPacket,
  type Login,
  subscribePacket,
} from './packets.ts'

/* A process that acts like browsers with on-air pages and consoles. */

type Question = { command: string; args?: Record<string, unknown>; everyMs: number }

/** The consoles open within this time, milliseconds. */
const openingMs = 3_000

/** `ofEach`: the commands of every console. `views`: the additional ones of each view. */
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

const pages: WebSocket[] = []
const timers: NodeJS.Timeout[] = []
const seen = { messages: 0, answers: 0, failures: 0 }
const agent = new Agent({ keepAlive: true })

export const commands = {
  /** Opens `onAir` pages and `consoles` consoles of one user, who may read and operate. */
  async open({
    door,
    token,
    onAir,
    consoles,
    livestreams,
  }: {
    door: HttpsDoor
    token: string
    onAir: number
    consoles: number
    livestreams: readonly string[]
  }) {
    // One credential for all pages, because a user gets few credentials a minute.
    const login: Login = JSON.parse(await post(door, '/auth/mqtt', {}, token))
    for (let nth = 0; nth < onAir; nth++) pages.push(await openPage(door, `page-bench-${nth}`, login))
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
    for (const page of pages) page.send(disconnectPacket)
    await Promise.all(
      pages.splice(0).map((page) => page.readyState === WebSocket.CLOSED || once(page, 'close')),
    )
    const was = { ...seen }
    Object.assign(seen, { messages: 0, answers: 0, failures: 0 })
    return was
  },
}

/** Opens an on-air page that counts its messages. More work would slow down the node on this machine. */
async function openPage({ httpsPort, ca }: HttpsDoor, clientId: string, login: Login): Promise<WebSocket> {
  const page = new WebSocket(`wss://localhost:${httpsPort}/mqtt`, 'mqtt', { ca, perMessageDeflate: false })
  await new Promise<void>((resolve, reject) => {
    const cut = createPacketCutter((bytes, start, body) => {
      const type = (bytes[start] ?? 0) >> 4
      // The hub's own pages subscribe at QoS 1.
      if (type === 2) page.send(subscribePacket(1, 'radio/#', 1))
      if (type === 3) {
        seen.messages++
        const idAt = body + 2 + bytes.readUInt16BE(body)
        if (((bytes[start] ?? 0) & 2) > 0) page.send(Buffer.of(0x40, 2, ...bytes.subarray(idAt, idAt + 2)))
      }
      if (type === 9) resolve()
    })
    page.on('message', (data: Buffer) => cut(data, data.length))
    page.once('open', () => page.send(connectPacket(clientId, true, login)))
    page.on('error', reject)
    page.once('close', () => {
      if (pages.includes(page)) seen.failures++
      reject(new Error('closed before the subscription'))
    })
  })
  return page
}

/** Returns the arguments with which a view asks for new events. */
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

async function post(door: HttpsDoor, path: string, body: object, token: string): Promise<string> {
  const { status, text } = await send(door, path, body, { token, agent })
  if (status < 300) return text
  throw new Error(`${path}: ${status} ${text}`)
}

answer(commands)
