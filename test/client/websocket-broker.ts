import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { generate, parser } from 'mqtt-packet'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { shareCertificates } from '../certificates.ts'
import { control, station } from '../events.ts'
import { listen } from '../listen.ts'
import { temporaryDirectory } from '../start-hub.ts'

/**
 * A broker over WebSocket that grants one filter, and sends the messages of a script after its SUBACK. `connection`: its
 * number, from 1 on. It ends with the test.
 */
export async function openWebSocketBroker(
  t: Test,
  script: (send: (message: Buffer) => void, connection: number) => void,
) {
  const certs = await temporaryDirectory(t)
  await shareCertificates(certs)
  const read = (name: string) => readFileSync(join(certs, name))
  const server = createServer({ key: read('server-key.pem'), cert: read('server.pem') })
  let connections = 0
  new WebSocketServer({ server, handleProtocols: () => 'mqtt' }).on('connection', (socket) => {
    const connection = ++connections
    const parse = parser()
    socket.on('error', () => {})
    socket.on('message', (bytes: Buffer) => parse.parse(bytes))
    parse.on('packet', (packet) => {
      if (packet.cmd === 'connect')
        socket.send(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
      if (packet.cmd !== 'subscribe') return
      socket.send(generate({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: [1] }))
      script((message) => socket.send(message), connection)
    })
  })
  const port = await listen(t, server)
  return { url: `wss://localhost:${port}/mqtt`, ca: join(certs, 'ca.pem') }
}

/** A packet with one event, whose name has so many characters. */
export function largeMessage(livestream: number, characters: number): Buffer {
  const payload = JSON.stringify({ ...control(station()), name: 'x'.repeat(characters) })
  const topic = `radio/${livestream}/control`
  return generate({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: true })
}
