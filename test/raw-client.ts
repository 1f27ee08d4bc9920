import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { generate, type Packet, parser } from 'mqtt-packet'
import type { Test } from 'tap'
import { patienceMs } from './patience.ts'

/** Connects a client that sends any packet, valid or not, and acknowledges nothing by itself. With `ca`: over TLS. */
export async function rawClient(t: Pick<Test, 'teardown'>, port: number, ca?: Buffer) {
  const socket: Socket =
    ca === undefined ? connect(port, '127.0.0.1') : connectSecurely({ port, host: 'localhost', ca })
  await new Promise<void>((resolve, reject) => {
    socket.once(ca === undefined ? 'connect' : 'secureConnect', resolve)
    socket.once('error', reject)
  })
  socket.setNoDelay(true)
  const packets: Packet[] = []
  const parse = parser()
  const changed = new Set<() => void>()
  let closed = false
  const change = () => {
    for (const listener of changed) listener()
  }
  parse.on('packet', (packet) => packets.push(packet))
  socket.on('data', (chunk) => {
    parse.parse(chunk)
    change()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    closed = true
    change()
  })
  t.teardown(() => socket.destroy())

  async function until<Result>(look: () => Result | undefined, what: string): Promise<Result> {
    const found = look()
    if (found !== undefined) return found
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        changed.delete(check)
      }
      const fail = () => {
        done()
        const last = packets.slice(-20).map(({ cmd }) => cmd)
        const seen = `${packets.length} packets, the last: ${last.join(' ')}${closed ? ', closed' : ''}`
        reject(new Error(`no ${what} within ${patienceMs} ms; seen: ${seen}`))
      }
      const timer = setTimeout(fail, patienceMs)
      const check = () => {
        const result = look()
        if (result === undefined) return closed ? fail() : undefined
        done()
        resolve(result)
      }
      changed.add(check)
      if (closed) check()
    })
  }

  return {
    socket,
    packets,
    send(...parts: (Packet | Buffer)[]): void {
      socket.write(Buffer.concat(parts.map((part) => (Buffer.isBuffer(part) ? part : generate(part)))))
    },
    /** CONNECT with the given fields; resolves with the CONNACK. */
    async connect(fields: Record<string, unknown> = {}) {
      this.send(connectPacket(fields))
      return this.next('connack')
    },
    /** CONNECT with the given fields; resolves with all packets that come before the broker closes the connection. */
    async connectInVain(fields: Record<string, unknown> = {}): Promise<readonly Packet[]> {
      this.send(connectPacket(fields))
      await this.closed()
      return packets
    },
    /** Resolves with the `index`th packet of a kind, counted from 0. */
    next<Command extends Packet['cmd']>(cmd: Command, index = 0) {
      type Wanted = Extract<Packet, { cmd: Command }>
      return until(
        () => packets.filter((packet): packet is Wanted => packet.cmd === cmd)[index],
        `${cmd} ${index}`,
      )
    },
    /** Resolves with the `index`th packet of any kind, counted from 0. */
    at: (index: number) => until(() => packets[index], `packet ${index}`),
    /** Resolves when the broker has closed the connection. */
    closed: () => until(() => (closed ? true : undefined), 'close'),
    get isClosed() {
      return closed
    },
    /** Resolves with the answer to a PINGREQ: by then, the broker has read everything sent before. */
    async settled(): Promise<void> {
      const before = packets.filter(({ cmd }) => cmd === 'pingresp').length
      this.send({ cmd: 'pingreq' })
      await this.next('pingresp', before)
    },
  }
}

/** A CONNECT of MQTT 3.1.1. */
export function connectPacket(fields: Record<string, unknown>): Packet {
  const base = {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 4,
    clean: true,
    clientId: 'raw',
    keepalive: 0,
  }
  return { ...base, ...fields } as Packet
}
