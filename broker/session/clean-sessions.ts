import { namedKeys, storeKeys } from '../../store/keys.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { eachOf } from './each-of.ts'
import type { Session } from './session.ts'

export type CleanSessions = ReturnType<typeof createCleanSessions>

/** Where the client of a clean session is connected. */
export interface CleanSession {
  node: string
  permission: string
  /** Grows with each log-in. */
  version: number
}

const { prefix, keyOf } = namedKeys(storeKeys.cleanSession)
/** On this channel, a node tells that it has replaced the clean session of a client on another node. */
const replacedChannel = 'clean session replaced'

/**
 * The records of clean sessions of nodes that share a store: docs/decisions, "Nobody hears of a clean session". Without
 * other nodes, there are none.
 */
export function createCleanSessions({ store, nodes }: { store: Store; nodes: Nodes }) {
  const { isShared } = nodes
  let hasGone = true
  nodes.onGone(() => {
    hasGone = true
  })

  return {
    key: keyOf,

    async read(clientId: string): Promise<CleanSession | undefined> {
      const value = isShared ? await store.get(keyOf(clientId)) : undefined
      return value && readRecord(value)
    },

    /** The changes that store a clean session. They fail if there is a later one than `before`. */
    changesOf({ clientId, permission, version }: Session, before = 0): Change[] {
      if (!isShared) return []
      const record: CleanSession = { node: nodes.self, permission, version }
      const order = { time: version, horizon: Infinity }
      const when = { notNewerThan: before }
      return [{ put: keyOf(clientId), value: JSON.stringify(record), order, when, isQuiet: true }]
    },

    /** The changes that remove a clean session. They fail if there is a later one than `before`. */
    removalOf: (clientId: string, before = 0): Change[] =>
      isShared ? [{ del: keyOf(clientId), when: { notNewerThan: before }, isQuiet: true }] : [],

    /** Tells another node that its client has logged in here. */
    tellReplaced: (clientId: string, { node, version }: CleanSession): Change[] =>
      node === nodes.self ? [] : [{ tell: replacedChannel, value: JSON.stringify({ clientId, version }) }],

    /** Calls back when another node has replaced the clean session of a client, with the version of the replaced one. */
    onReplaced(listener: (clientId: string, version: number) => void): void {
      store.onTold(replacedChannel, (value) => {
        const { clientId, version }: { clientId: string; version: number } = JSON.parse(value.toString())
        listener(clientId, version)
      })
    },

    /** Removes the records of nodes that are gone, if some may be there. */
    async removeGone(): Promise<void> {
      if (!isShared || !hasGone) return
      hasGone = false
      try {
        const found: [key: string, record: CleanSession][] = []
        for await (const [key, value] of store.range(prefix)) {
          const record = readRecord(value)
          if (!nodes.isLiving(record.node)) found.push([key, record])
        }
        // A record may be that of a node of which this one has not heard yet.
        await store.catchUp()
        const gone = found.filter(([, { node }]) => !nodes.isLiving(node))
        await eachOf(gone, async ([del, { version }]) => {
          await store.commit([{ del, when: { notNewerThan: version }, isQuiet: true }])
        })
      } catch (error) {
        hasGone = true
        throw error
      }
    },
  }
}

/** Whether a commit failed because there is a clean session of this client. */
export function isOfCleanSession(error: unknown, clientId: string): boolean {
  return error instanceof ConditionFailed && error.key === keyOf(clientId)
}

function readRecord(value: Buffer): CleanSession {
  return JSON.parse(value.toString())
}
