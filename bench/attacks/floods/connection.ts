import { connect } from 'node:net'
import { connectPacket } from '../../load/packets.ts'
import { type Attack, createAssault, nextChunk } from '../attack.ts'

/** Log-ins with wrong passwords, each over a connection of its own. */
export const wrongPasswords: Attack = (target, force) => {
  const assault = createAssault(force)
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    const login = { ...target.subscriber, password: 'wrong' }
    await assault.write(socket, connectPacket(`wrong-${worker}`, true, login))
    const connack = await nextChunk(socket)
    assault.answered(`CONNACK ${connack?.[3]}`)
    assault.seen.units++
    assault.leave(socket)
  })
}

/** TLS handshakes and nothing more. */
export const handshakes: Attack = (target, force) => {
  const assault = createAssault(force)
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    assault.seen.units++
    assault.leave(socket)
  })
}

/** Log-ins with a will of 60 kB for the inbox. The client then cuts the connection. */
export const largeWills: Attack = (target, force) => {
  const assault = createAssault(force)
  const topic = Buffer.from(`inbox/${target.livestreams[0]?.institution.id}`)
  const will = Buffer.alloc(60_000, '[')
  const text = (bytes: Buffer) => Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes])
  return assault.everywhere(async (worker) => {
    const socket = await assault.connect(target.mqttPort, worker)
    if (!socket) return
    const body = Buffer.concat([
      Buffer.from([0, 4, ...Buffer.from('MQTT'), 4, 0xce, 0, 0]),
      ...[Buffer.from(`will-${worker}`), topic, will].map(text),
      ...[target.publisher.username, target.publisher.password].map((part) => text(Buffer.from(part))),
    ])
    const length = Buffer.of((body.length & 127) | 128, ((body.length >> 7) & 127) | 128, body.length >> 14)
    await assault.write(socket, Buffer.concat([Buffer.of(0x10), length, body]))
    const connack = await nextChunk(socket)
    assault.answered(`CONNACK ${connack?.[3]}`)
    if (connack?.[3] === 0) assault.seen.units++
    assault.leave(socket)
  })
}

/** Connections with only the start of a ClientHello. Each stays for at most two seconds. */
export const halfHandshakes: Attack = (target, force) => {
  const assault = createAssault(force)
  return assault.everywhere(async (worker) => {
    assault.seen.opened++
    assault.seen.units++
    const localAddress = `127.0.0.${1 + (worker % force.addresses)}`
    const socket = connect({ host: '127.0.0.1', port: target.mqttPort, localAddress })
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 2_000)
      socket.on('error', () => {})
      socket.once('connect', () => socket.write(Buffer.from('1603010200010001fc0303', 'hex')))
      socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
    })
    socket.destroy()
  })
}
