import { answer } from '../answer.ts'
import { delaysOf } from './delays.ts'
import { type Address, type LightClient, openLightClient, paced } from './light-client.ts'
import { disconnectPacket, type Login, subscribePacket } from './packets.ts'
import { createReceipts } from './receipts.ts'

/* A load generator: a process with many subscribers, the crowd. */

interface Member {
  client: LightClient | undefined
  clientId: string
  tlsSession: Buffer | undefined
  /** Called when the SUBACK has come. */
  subscribed: () => void
  /** The bytes of PUBACKs that the member has not sent yet. */
  owed: number[]
}

interface Joining {
  address: Address
  count: number
  filter: string
  qos: number
  clean?: boolean
  login?: Login | undefined
  /** Whether clients send SUBSCRIBE (default: true). Returning persistent sessions need no SUBSCRIBE. */
  subscribes?: boolean
}

/** Number of log-ins at the same time. With hundreds, each handshake would wait for all others. */
const concurrency = 16

const receipts = createReceipts()
let joined: Joining | undefined
const members: Member[] = []
/** Members with unsent PUBACKs. The member that waits longest is the first. */
const owing = new Set<Member>()
/** Number of all messages above QoS 0 received so far, and the same number at the last `acknowledgeInQuiet`. */
let arrived = 0
let arrivedBefore = 0
let isWaiting = false

export const commands = {
  /** Connects and subscribes `count` more members. Returns the milliseconds until all have their SUBACK. */
  async join(joining: Joining): Promise<{ ms: number }> {
    joined = joining
    const start = performance.now()
    const first = members.length
    for (let index = first; index < first + joining.count; index++) {
      const clientId = `crowd-${process.pid}-${index}`
      members.push({ client: undefined, clientId, tlsSession: undefined, subscribed() {}, owed: [] })
    }
    await paced(joining.count, concurrency, (index) => enter(joining, members[first + index]))
    return { ms: performance.now() - start }
  },

  /** All members subscribe once more, at another QoS. */
  async change({ qos }: { qos: number }): Promise<void> {
    if (!joined) return
    joined = { ...joined, qos }
    const { filter } = joined
    await paced(members.length, 64, (index) => subscribe(members[index], filter, qos))
  },

  /** Breaks all connections at once. `loggedOut`: each member first sends a DISCONNECT. */
  async leave({ loggedOut = false }: { loggedOut?: boolean }): Promise<void> {
    await Promise.all(
      members.map(async (member) => {
        const { client } = member
        if (!client) return
        // A client that has resumed a session may get no new one.
        member.tlsSession = client.tlsSession ?? member.tlsSession
        if (loggedOut) await logOut(client)
        else await new Promise((resolve) => client.socket.once('close', resolve).destroy())
        member.client = undefined
      }),
    )
  },

  /**
   * Makes `count` persistent sessions and leaves them offline. Stops after `seconds`. All clients resume one TLS
   * session, which is cheaper.
   */
  async leaveBehind(of: Joining & { first: number; seconds: number }): Promise<void> {
    let isOver = false
    let tlsSession: Buffer | undefined
    const all = paced(of.count, concurrency, async (index) => {
      if (isOver) return
      const clientId = `left-behind-${of.first + index}`
      const member: Member = { client: undefined, clientId, tlsSession, subscribed() {}, owed: [] }
      await enter({ ...of, clean: false }, member)
      if (!member.client) return
      tlsSession = member.client.tlsSession ?? tlsSession
      await logOut(member.client)
    })
    await Promise.race([all, new Promise((resolve) => setTimeout(resolve, of.seconds * 1000))])
    isOver = true
  },

  /** Breaks all connections, and forgets the members. */
  async dismiss(_: object): Promise<void> {
    await commands.leave({})
    members.length = 0
  },

  /** Connects and subscribes all members again. `resumed`: how many resumed their TLS session. */
  async comeBack(of: { resume: boolean; atOnce: number; subscribes?: boolean }) {
    const { resume, atOnce, subscribes = true } = of
    if (!joined) throw new Error('nobody has left')
    const joining = { ...joined, subscribes }
    const start = performance.now()
    const each = await paced(members.length, atOnce, async (index) => {
      const member = members[index]
      if (member && !resume) member.tlsSession = undefined
      await enter(joining, member)
      return performance.now() - start
    })
    const ms = performance.now() - start
    const resumed = members.filter(({ client }) => client?.resumed).length
    return { ms, ...delaysOf(each), resumed }
  },

  begin: receipts.begin,
  finish: receipts.finish,
}

answer(commands)

async function enter(joining: Joining, member: Member | undefined) {
  const { address, clean = true, login, filter, qos, subscribes = true } = joining
  if (!member) return
  member.owed = []
  member.client = await openLightClient({
    address,
    login,
    clean,
    clientId: member.clientId,
    tlsSession: member.tlsSession,
    onPacket(bytes, start, body, end) {
      const header = bytes[start] ?? 0
      if (header === 0x90) member.subscribed()
      if (header >> 4 !== 3) return
      const topicEnd = body + 2 + bytes.readUInt16BE(body)
      const hasId = (header & 6) !== 0
      if (hasId) acknowledge(member, bytes[topicEnd] ?? 0, bytes[topicEnd + 1] ?? 0)
      receipts.count(bytes, hasId ? topicEnd + 2 : topicEnd, end)
    },
  })
  if (subscribes) await subscribe(member, filter, qos)
}

/** Sends a DISCONNECT. Resolves when the node has closed the connection. */
async function logOut({ socket }: LightClient): Promise<void> {
  if (socket.destroyed) return
  await new Promise((resolve) => socket.once('close', resolve).end(disconnectPacket))
}

/**
 * Queues a PUBACK until no member has messages left to read. Real subscribers have machines of their own, and never
 * wait for PUBACKs of others.
 */
function acknowledge(member: Member, high: number, low: number): void {
  arrived++
  if (!isWaiting) setImmediate(acknowledgeInQuiet)
  isWaiting = true
  member.owed.push(0x40, 2, high, low)
  // 8 bytes are two PUBACKs. The member then waits no longer, and writes them together.
  if (owing.has(member) && member.owed.length === 8) queueMicrotask(() => writeOwed(member))
  owing.add(member)
}

/** Writes the PUBACKs of up to 32 members, if no message came since the last call. Repeats until no PUBACK is left. */
function acknowledgeInQuiet(): void {
  let count = arrived === arrivedBefore ? 32 : 0
  for (const member of owing) {
    if (count-- <= 0) break
    writeOwed(member)
  }
  arrivedBefore = arrived
  isWaiting = owing.size > 0
  if (isWaiting) setImmediate(acknowledgeInQuiet)
}

function writeOwed(member: Member): void {
  owing.delete(member)
  member.client?.socket.write(Buffer.from(member.owed))
  member.owed.length = 0
}

function subscribe(member: Member | undefined, filter: string, qos: number): Promise<void> {
  return new Promise((resolve) => {
    if (!member?.client) return resolve()
    member.subscribed = resolve
    member.client.socket.write(subscribePacket(1, filter, qos))
  })
}
