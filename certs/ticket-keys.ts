import { randomBytes } from 'node:crypto'
import { storeKeys } from '../store/keys.ts'
import { ConditionFailed, type Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'

export type TicketKeys = Pick<Awaited<ReturnType<typeof openTicketKeys>>, 'current' | 'onChange'>

/** So long a key encrypts tickets, seconds. A client that was away for longer makes a full handshake. */
export const ticketLifeSeconds = 12 * 3600
/** Time between two looks at the age of the key, milliseconds. */
const lookMs = 60_000
/** What Node.js wants: a name, a key for HMAC and a key for AES, 16 bytes each. */
const keyBytes = 48

/**
 * The key that encrypts the tickets with which clients resume TLS sessions (RFC 5077 §4). It lies in the store: a client
 * resumes at every node and worker, also after a restart. The leader makes a new key when the old one has served its
 * time. Node.js takes tickets of one key only, so those of the old key are worth nothing then.
 */
export async function openTicketKeys(parts: {
  store: Store
  isLeader: () => boolean
  clock: () => number
  log: Log
}) {
  const { store, isLeader, clock, log } = parts
  const { prefix } = storeKeys.ticketKey
  const path = `${prefix}current`
  const listeners: ((key: Buffer) => void)[] = []
  let stored = (await store.get(path))?.toString() ?? (await replace(undefined))
  store.onOthers(prefix, (_key, value) => {
    if (value) take(value.toString())
  })
  const timer = setInterval(() => void look(), lookMs).unref()

  return {
    /** The key in use now. */
    current: (): Buffer => keyIn(stored),
    /** Calls back with each new key. */
    onChange: (listener: (key: Buffer) => void): void => void listeners.push(listener),
    look,
    close: (): void => clearInterval(timer),
  }

  /** Replaces the key if its time is over. A time far ahead is that of a wrong clock. */
  async function look(): Promise<void> {
    const madeAt = Number.parseInt(stored, 10)
    if (!isLeader() || Math.abs(clock() - madeAt) < ticketLifeSeconds * 1000) return
    try {
      take(await replace(stored))
    } catch (err) {
      log.warn({ err }, 'the key of TLS tickets could not be replaced')
    }
  }

  /** Stores a new key in place of `before`. Returns the key that another node has stored meanwhile, if one has. */
  async function replace(before: string | undefined): Promise<string> {
    const value = `${clock()} ${randomBytes(keyBytes).toString('base64')}`
    try {
      await store.commit([{ put: path, value, when: before === undefined ? 'absent' : { value: before } }])
      return value
    } catch (error) {
      const found = error instanceof ConditionFailed && (await store.get(path))
      if (!found) throw error
      return found.toString()
    }
  }

  function take(value: string): void {
    if (value === stored) return
    stored = value
    for (const listener of listeners) listener(keyIn(value))
  }
}

function keyIn(stored: string): Buffer {
  return Buffer.from(stored.slice(stored.indexOf(' ') + 1), 'base64')
}
