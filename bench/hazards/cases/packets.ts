import { longPatienceMs, openSocket } from '../client.ts'
import { type Hazard, seen } from '../hazard.ts'
import type { Subject } from '../subject.ts'
import { openSubscriber, openUser } from '../users.ts'

/* Hazards: a broker accepts packets that MQTT 3.1.1 does not allow. */

const none = Buffer.alloc(0)

export const malformedConnects: Hazard = {
  about:
    'Eight kinds of CONNECT that MQTT 3.1.1 does not allow, or that are of another version: those that are let in.',
  async look({ subject }) {
    const { username, password } = await subject.reader()
    const login = Buffer.concat([text(username), text(password)])
    // The flags of CONNECT for a user name, a password and a clean session.
    const flags = 0xc2
    const connects = [
      connect({ name: 'MQIsdp', level: 3, flags, rest: login }),
      connect({ level: 3, flags, rest: login }),
      connect({ level: 0x83, flags, rest: login }),
      connect({ id: '', flags: flags & ~2, rest: login }),
      connect({ flags: 0x42, rest: text(password) }),
      connect({ flags: flags | 0x1c, rest: Buffer.concat([text('a'), text('b'), login]) }),
      connect({ flags: flags | 0x04, rest: Buffer.concat([text(''), text('b'), login]) }),
      connect({ flags, rest: Buffer.concat([login, Buffer.from('more')]) }),
    ]
    const good = connect({ flags, rest: login })
    if (!(await letsIn(subject, good, longPatienceMs))) throw new Error('a good one is refused')
    let accepted = 0
    for (const bytes of connects) if (await letsIn(subject, bytes)) accepted++
    return seen(accepted, connects.length)
  },
}

export const malformedFilters: Hazard = {
  about: 'Six filters that are none (`radio/+x`, `radio/x#`, one with NUL, …): those that are granted.',
  async look({ subject }) {
    const filters = ['radio/x+', 'radio/+x', 'radio/++', 'radio/x#', 'radio/#x', 'radio/\0/x']
    let granted = 0
    for (const filter of filters) {
      const client = await openUser(subject, { login: await subject.reader() })
      const [qos = 0x80] = (await client.subscribe([filter], 0)) ?? []
      if (qos < 0x80) granted++
      await client.leave()
    }
    return seen(granted, filters.length)
  },
}

export const malformedTopics: Hazard = {
  about: 'Messages for topics that are none, with NUL and with invalid UTF-8: those that a subscriber gets.',
  async look({ subject, livestream, institution }) {
    const subscriber = await openSubscriber({ subject }, [`radio/${livestream.id}/#`], 0)
    const endings = [Buffer.from('a\0b'), Buffer.of(0xed, 0xa0, 0x80), Buffer.of(0xc3, 0x28)]
    for (const ending of endings) {
      const topic = Buffer.concat([Buffer.from(`radio/${livestream.id}/`), ending])
      const client = await openUser(subject, { login: await subject.publisher(institution) })
      client.send(packet(0x30, sized(topic), Buffer.from('x')))
      await client.settle()
      await client.close()
    }
    await subscriber.quiet()
    return seen(subscriber.messages().length, endings.length)
  },
}

export const clientIdsCollide: Hazard = {
  about: 'Clients with ids that differ in bytes which are no UTF-8: those that are cut off by the other one.',
  async look({ subject }) {
    const { username, password } = await subject.reader()
    const rest = Buffer.concat([text(username), text(password)])
    const clients = []
    for (const byte of [0xff, 0xfe]) {
      const client = await openSocket(subject.address())
      client.send(connect({ id: Buffer.of(0x61, byte, 0x62), flags: 0xc2, rest }))
      const isIn = await client.until(() => client.count('connack') > 0 || undefined, 2000)
      clients.push({ client, isIn })
    }
    const [first] = clients
    await first?.client.until(() => undefined, 500)
    const isCut = first?.isIn === true && first.client.isClosed()
    for (const { client } of clients) await client.close()
    return seen(isCut ? 1 : 0, 1)
  },
}

export const violationsAnswered: Hazard = {
  about:
    'A PUBLISH with packet id 0, an UNSUBSCRIBE without a filter and a PINGREQ with a payload: those after which the ' +
    'connection goes on.',
  async look({ subject, institution }) {
    const login = await subject.reader()
    const wrong = [
      {
        login: await subject.publisher(institution),
        bytes: packet(0x32, text(`inbox/${institution}`), Buffer.of(0, 0)),
      },
      { login, bytes: packet(0xa2, Buffer.of(0, 1)) },
      { login, bytes: packet(0xc0, Buffer.of(0)) },
    ]
    let answered = 0
    for (const { login: who, bytes } of wrong) {
      const client = await openUser(subject, { login: who })
      client.send(bytes)
      await client.settle()
      if (!client.isClosed()) answered++
      await client.close()
    }
    return seen(answered, wrong.length)
  },
}

async function letsIn(subject: Subject, bytes: Buffer, withinMs = 2000): Promise<boolean> {
  const client = await openSocket(subject.address())
  client.send(bytes)
  const connack = await client.until(() => client.packets.find(({ cmd }) => cmd === 'connack'), withinMs)
  await client.close()
  return connack?.cmd === 'connack' && connack.returnCode === 0
}

/** A CONNECT that is valid except for the given parts. */
function connect(of: {
  name?: string
  level?: number
  flags: number
  id?: string | Buffer
  rest?: Buffer
}): Buffer {
  const { name = 'MQTT', level = 4, flags, id = `odd-${++lastId}`, rest = none } = of
  return packet(0x10, text(name), Buffer.of(level, flags, 0, 60), sized(Buffer.from(id)), rest)
}

let lastId = 0

function packet(header: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length = body.length < 128 ? [body.length] : [(body.length % 128) | 128, body.length >> 7]
  return Buffer.concat([Buffer.of(header, ...length), body])
}

function text(value: string): Buffer {
  return sized(Buffer.from(value))
}

function sized(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes])
}
