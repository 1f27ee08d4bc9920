import { setTimeout as delay } from 'node:timers/promises'
import { answer } from '../../../bench/answer.ts'
import { type Address, type LightClient, openLightClient, paced } from '../../../bench/load/light-client.ts'
import { type Login, subscribePacket } from '../../../bench/load/packets.ts'
import { markerOf } from '../fence/publishers.ts'

/* A process with many persistent sessions. Each comes back whenever its connection ends, to the next node. */

/** How many connect at the same time at first. */
const concurrency = 16
/** Pause of a client that a node did not let in, milliseconds. */
const pauseMs = 200

interface Member {
  clientId: string
  filter: string
  client: LightClient | undefined
  isSubscribed: boolean
  subscribed: () => void
  received: Set<string>
}

let members: Member[] = []
let isOver = false

export const commands = {
  /** Resolves when all are connected and subscribed. `filters`: each member has one of them. */
  async join(of: {
    count: number
    login: Login
    filters: readonly string[]
    doors: readonly [Address, ...Address[]]
  }): Promise<void> {
    members = Array.from({ length: of.count }, (_, index) => ({
      clientId: `crowd-${process.pid}-${index}`,
      filter: of.filters[index % of.filters.length] ?? '',
      client: undefined,
      isSubscribed: false,
      subscribed: () => {},
      received: new Set(),
    }))
    await paced(of.count, concurrency, async (index) => {
      const member = members[index]
      if (!member) return
      await new Promise<void>((resolve) => {
        member.subscribed = resolve
        void stay(member, index, of)
      })
    })
  },

  /** How many are connected. */
  connected: (_: object): number => members.filter(({ client }) => client && !client.socket.destroyed).length,

  /** Each event that a member should have got, and did not. */
  missing: ({ sent }: { sent: readonly { topic: string; marker: string }[] }): string[] =>
    members.flatMap(({ clientId, filter, received }) =>
      sent.flatMap(({ topic, marker }) =>
        topic === filter && !received.has(marker) ? [`${clientId} misses ${marker}`] : [],
      ),
    ),

  leave(_: object): void {
    isOver = true
    for (const { client } of members) client?.socket.destroy()
  },
}

answer(commands)

async function stay(
  member: Member,
  index: number,
  { login, doors }: { login: Login; doors: readonly [Address, ...Address[]] },
): Promise<void> {
  for (let next = index; !isOver; next++) {
    try {
      const client = await openLightClient({
        address: doors[next % doors.length] ?? doors[0],
        login,
        clean: false,
        clientId: member.clientId,
        onPacket(bytes, start, body, end) {
          const type = (bytes[start] ?? 0) >> 4
          if (type === 9) {
            member.isSubscribed = true
            member.subscribed()
          }
          if (type !== 3) return
          const id = body + 2 + bytes.readUInt16BE(body)
          member.received.add(markerOf(bytes.subarray(id + 2, end)))
          const puback = Buffer.of(0x40, 2, bytes[id] ?? 0, bytes[id + 1] ?? 0)
          // The first messages come together with the CONNACK, before there is a client.
          setImmediate(() => member.client?.socket.write(puback))
        },
      })
      member.client = client
      const closed = new Promise((resolve) => client.socket.once('close', resolve))
      if (!member.isSubscribed) client.socket.write(subscribePacket(1, member.filter, 1))
      if (!client.socket.destroyed) await closed
    } catch {
      await delay(pauseMs)
    }
  }
}
