import type { Nodes } from '../../store/nodes/nodes.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { Session } from './session.ts'
import { identityOf, incomingPrefix, readRecord, recordPrefix, type SessionRecord } from './session-store.ts'

/** Reads all sessions at the start of a node, and removes what belongs to none. */
export async function loadSessions(parts: {
  store: Store
  outbox: Outbox
  nodes: Nodes
  /** Milliseconds since the epoch. */
  now: number
  adopt: (record: SessionRecord) => Session
  get: (clientId: string) => Session | undefined
}): Promise<void> {
  const { store, outbox, nodes, now, adopt, get } = parts
  const ending: Promise<void>[] = []
  for await (const [key, value] of store.range(recordPrefix)) {
    const { node, ...record } = readRecord(value)
    // Whether that node is still there shows when this one has joined.
    const isHeld = nodes.isShared && node !== undefined
    if (record.clean && !isHeld) ending.push(end(key, value))
    // A session that was connected when its node died has been offline since then: since now at the latest.
    else if (isHeld) adopt({ ...record, node })
    else adopt({ ...record, disconnectedAt: record.disconnectedAt ?? now })
  }
  await Promise.all(ending)
  const forgotten: Change[] = []
  const heardAt = nodes.isShared ? outbox.nextSequence() : 0
  for await (const [key, value] of store.range(incomingPrefix)) {
    const [, clientId = '', packetId = ''] = key.split('/')
    const session = get(decodeURIComponent(clientId))
    // Of an earlier session with the same client id, whose end overtook the message.
    if (session && value.toString() === identityOf(session)) session.incoming.set(Number(packetId), heardAt)
    else forgotten.push({ del: key })
  }
  // Where there are other nodes they may be writing what is missing here.
  if (nodes.isShared) return
  await outbox.dropOrphans()
  await store.commit(forgotten)

  /** Where its client has not logged in to another node meanwhile. */
  async function end(key: string, value: Buffer): Promise<void> {
    await store.commit([{ del: key, when: { value } }]).catch((error: unknown) => {
      if (!(error instanceof ConditionFailed)) throw error
    })
  }
}
