import { Agent, request } from 'node:https'
import { connectAsync, type MqttClient } from 'mqtt'
import { answer } from '../answer.ts'

/* A process with pages as browsers have them open: on-air pages over WebSocket, and consoles that ask the node. */

interface Door {
  port: number
  ca: string
}

/** What a console asks by itself, and how often, milliseconds: the overview with its charts, and the events. */
const consoleAsks = { status: 3_000, trend: 10_000, 'events.list': 5_000 }

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
  }: {
    door: Door
    token: string
    onAir: number
    consoles: number
  }) {
    // One for all of them: a user may ask for a few a minute.
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
      for (const [command, everyMs] of Object.entries(consoleAsks)) {
        const args = command === 'events.list' ? { limit: 50 } : {}
        const askNow = () => void post(door, `/operate/${command}`, args, token).then(answered, failed)
        // As people open them: not all in the same moment.
        const first = setTimeout(() => timers.push(setInterval(askNow, everyMs)), (everyMs * nth) / consoles)
        timers.push(first)
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

function answered(): void {
  seen.answers++
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
