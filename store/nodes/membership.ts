import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Log } from '../../telemetry/log.ts'
import type { Told } from '../store.ts'
import type { WatchedStore } from '../watched.ts'
import { maxNodes, type Nodes } from './nodes.ts'

/** Between two signs of life, milliseconds. */
const heartbeatMs = 1_000
/**
 * A node is gone when it gave no sign while this one gave so many that arrived. Counted, not measured: a store
 * that nobody reaches, or a clock that is wrong, makes nobody dead.
 */
const patience = 5

const prefix = 'node/'
const channel = 'alive'

interface NodeRecord {
  slot: number
  name: string
}

/**
 * Which nodes are there. Everything is decided by commits, whose order is the same for all: who has a slot,
 * and when a node is gone.
 */
export async function createMembership(parts: {
  store: WatchedStore
  /** Host and process, for operators. */
  name: string
  /** Remembers the id of this node, so that the next start tells the others that it is gone. */
  idFile: string
  log: Log
  heartbeatMs?: number
}): Promise<Nodes> {
  const { store, name, idFile, log } = parts
  const self = randomUUID()
  const previous = await readFile(idFile, 'utf8').catch(() => undefined)
  const records = new Map<string, NodeRecord>()
  const missed = new Map<string, number>()
  const goneListeners: ((node: string) => void)[] = []
  const changeListeners: (() => void)[] = []
  const returnListeners: (() => void)[] = []
  let ownSlot = 0
  let timer: NodeJS.Timeout | undefined
  let isBeating = false
  let comingBack: Promise<void> | undefined
  let isLeaving = false

  for await (const [key, value] of store.range(prefix)) records.set(nodeOf(key), JSON.parse(value.toString()))
  store.watch(prefix, heard)
  store.watch(channel, (change) => {
    if (!('tell' in change)) return
    const node = change.value.toString()
    if (records.has(node)) missed.set(node, 0)
  })

  return {
    self,
    name,
    isShared: true,
    slot: () => ownSlot,
    isLiving: (node) => records.has(node),
    living: () => [...records].sort(([, a], [, b]) => a.slot - b.slot).map(([node]) => node),
    nameOf: (node) => records.get(node)?.name ?? node,
    isLeader: () => isFirst(() => true),
    onGone: (listener) => void goneListeners.push(listener),
    onChange: (listener) => void changeListeners.push(listener),
    onReturn: (listener) => void returnListeners.push(listener),

    async join(): Promise<void> {
      const wasThere = previous !== undefined && records.delete(previous)
      if (previous !== undefined) await store.commit([{ del: prefix + previous }])
      await take()
      // Not before: with nobody else there it is this node that clears up behind its former self.
      if (wasThere) tellGone(previous)
      await writeFile(idFile, self, { mode: 0o600 })
      timer = setInterval(() => void beat(), parts.heartbeatMs ?? heartbeatMs)
      log.info({ node: self, slot: ownSlot, nodes: records.size }, 'joined the other nodes')
    },

    async leave(): Promise<void> {
      isLeaving = true
      clearInterval(timer)
      await store.commit([{ del: prefix + self }])
      records.delete(self)
    },
  }

  /** Takes a slot. Of two that want the same one the first commit has it. */
  async function take(): Promise<void> {
    while (!isLeaving) {
      const used = new Set([...records].filter(([node]) => node !== self).map(([, { slot }]) => slot))
      const slot = Array.from({ length: maxNodes }, (_, index) => index).find((index) => !used.has(index))
      if (slot === undefined) throw new Error(`there are ${maxNodes} nodes already`)
      const record: NodeRecord = { slot, name }
      await store.commit([{ put: prefix + self, value: JSON.stringify(record) }])
      const isTaken = [...records].some(([node, other]) => node !== self && other.slot === slot)
      if (isTaken) continue
      ownSlot = slot
      records.set(self, record)
      changed()
      return
    }
  }

  function heard(change: Told): void {
    if ('put' in change) {
      const node = nodeOf(change.put)
      records.set(node, JSON.parse(change.value.toString()))
      missed.set(node, 0)
      changed()
    } else if ('del' in change) {
      if (nodeOf(change.del) === self) void comeBack()
      else gone(nodeOf(change.del))
    }
  }

  function gone(node: string): void {
    missed.delete(node)
    if (records.delete(node)) tellGone(node)
  }

  function tellGone(node: string): void {
    log.warn({ node }, 'a node is gone')
    for (const listener of goneListeners) listener(node)
    changed()
  }

  /** It was cut off from the store for so long that the others went on without it. */
  function comeBack(): Promise<void> {
    records.delete(self)
    comingBack ??= joinAgain().finally(() => {
      comingBack = undefined
    })
    return comingBack
  }

  async function joinAgain(): Promise<void> {
    if (isLeaving) return
    log.warn('the other nodes took this one for dead')
    try {
      await take()
      if (isLeaving) return
      for (const listener of returnListeners) listener()
    } catch (err) {
      log.error({ err }, 'not joined again')
    }
  }

  async function beat(): Promise<void> {
    if (isBeating) return
    isBeating = true
    try {
      if (!records.has(self)) await comeBack()
      await store.commit([{ tell: channel, value: self }])
      for (const node of records.keys()) {
        if (node !== self) missed.set(node, (missed.get(node) ?? 0) + 1)
      }
      await bury()
    } catch (err) {
      log.debug({ err }, 'sign of life not given')
    } finally {
      isBeating = false
    }
  }

  async function bury(): Promise<void> {
    const isSilent = (node: string) => (missed.get(node) ?? 0) > patience
    const silent = [...records.keys()].filter(isSilent)
    if (silent.length === 0 || !isFirst((node) => !isSilent(node))) return
    await store.commit(silent.map((node) => ({ del: prefix + node })))
    for (const node of silent) gone(node)
  }

  /** Whether this node has the lowest slot of those that count. One that is not there yet, or no longer, is none. */
  function isFirst(counts: (node: string) => boolean): boolean {
    if (!records.has(self)) return false
    return [...records].every(([node, { slot }]) => slot >= ownSlot || node === self || !counts(node))
  }

  function changed(): void {
    for (const listener of changeListeners) listener()
  }
}

function nodeOf(key: string): string {
  return key.slice(prefix.length)
}
