import { hash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer, type TLSSocket } from 'node:tls'
import { generate, type IPublishPacket, type Packet, parser } from 'mqtt-packet'
import type { Test } from 'tap'
import { shareCertificates } from '../certificates.ts'
import { temporaryDirectory } from '../start-hub.ts'

/** What a script does with one packet of a client. */
export interface Turn {
  packet: Packet
  /** Number of the connection, from 1 on. */
  connection: number
  clientId: string
  send(packet: Packet): void
  /** Sends bytes, whatever they are. */
  write(bytes: Uint8Array): void
  /** Sends the report of a PUBLISH, as the hub would. `fields` replace its fields. */
  report(packet: IPublishPacket, fields?: Record<string, unknown>, dup?: boolean): void
  /** Answers as the hub would: CONNACK, SUBACK, or report and PUBACK. */
  proceed(): void
  /** Ends the connection without a word. */
  cut(): void
}

/**
 * A broker over TLS that answers as a script says: outages that a real hub cannot be brought to at a certain packet. It
 * ends with the test.
 */
export async function openScriptedBroker(t: Test, script: (turn: Turn) => void) {
  const certs = await temporaryDirectory(t)
  await shareCertificates(certs)
  const [key, cert] = ['server-key.pem', 'server.pem'].map((name) => readFileSync(join(certs, name)))
  const sockets = new Set<TLSSocket>()
  /** Everything that clients have published, in order. */
  const published: IPublishPacket[] = []
  const waiting = new Set<() => void>()
  let connections = 0
  const server = createServer({ ...(key && { key }), ...(cert && { cert }) }, (socket) => {
    const connection = ++connections
    const parse = parser()
    let clientId = ''
    const send = (packet: Packet) => void socket.write(generate(packet))
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    socket.on('close', () => sockets.delete(socket))
    parse.on('packet', (packet) => {
      if (packet.cmd === 'connect') clientId = packet.clientId
      if (packet.cmd === 'publish') published.push(packet)
      const report: Turn['report'] = (about, fields, dup = false) =>
        send(reportOf(about, { clientId, ...fields }, dup))
      script({
        packet,
        connection,
        clientId,
        send,
        write: (bytes) => void socket.write(bytes),
        report,
        proceed: () => answer(packet, send, report),
        cut: () => socket.destroy(),
      })
      for (const look of waiting) look()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()

  return {
    url: `mqtts://localhost:${typeof address === 'object' ? address?.port : ''}`,
    ca: join(certs, 'ca.pem'),
    published,
    /** Ends all connections without a word. */
    cut(): void {
      for (const socket of sockets) socket.destroy()
    },
    /** Resolves when no connection is left. */
    async left(): Promise<void> {
      for (const socket of sockets) await new Promise((resolve) => socket.once('close', resolve))
    },
    /** Resolves when clients have published so many. */
    async count(count: number): Promise<void> {
      while (published.length < count) {
        await new Promise<void>((resolve) => {
          const look = () => {
            waiting.delete(look)
            resolve()
          }
          waiting.add(look)
        })
      }
    },
  }
}

function answer(packet: Packet, send: Turn['send'], report: Turn['report']): void {
  if (packet.cmd === 'connect') send({ cmd: 'connack', returnCode: 0, sessionPresent: false })
  if (packet.cmd === 'subscribe') {
    send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: packet.subscriptions.map(() => 1) })
  }
  if (packet.cmd === 'pingreq') send({ cmd: 'pingresp' })
  if (packet.cmd === 'publish') {
    report(packet)
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  }
}

let reports = 0

function reportOf(about: IPublishPacket, fields: Record<string, unknown>, dup: boolean): Packet {
  const payload = JSON.stringify({
    outcome: 'published',
    id: '7261',
    errors: [],
    payloadHash: hash('sha256', about.payload, 'hex').slice(0, 16),
    ...(about.topic.endsWith('/check') && { dryRun: true }),
    ...fields,
  })
  reports++
  const topic = about.topic.replace('inbox/', 'feedback/').replace('/check', '')
  return { cmd: 'publish', topic, payload, qos: 1, messageId: (reports % 65_535) + 1, dup, retain: false }
}
