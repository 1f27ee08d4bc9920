import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Log } from '../../telemetry/log.ts'
import type { FollowedStore } from '../other-nodes.ts'
import { type Change, ConditionFailed, Fenced, keyOf, type Told } from '../store.ts'
import { maxNodes, type Nodes } from './nodes.ts'

/** Between two signs of life, milliseconds. */
const heartbeatMs = 1_000
/**
 * A node is gone when it gave no sign while this one gave so many that arrived. Counted, not measured: a store
 * that nobody reaches, or a clock that is wrong, makes nobody dead.
 */
const patience = 5

/** `member/{slot}` is the node that has the slot: there is room for one. */
const prefix = 'member/'
const channel = 'alive'

interface Member {
  node: string
  /** For operators. */
  name: string
  /** How often this node has joined: commits of an earlier membership of the same node are refused. */
  number: number
}

/**
 * Which nodes are there. Everything is decided by commits, whose order is the same for all: who has a slot,
 * and when a node is gone. The commits of a node apply only while it is a member: one that was away for too long is
 * refused until it has caught up with the others and joined again.
 */
export async function createMembership(parts: {
  store: FollowedStore
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
  const members = new Map<number, Member>()
  const missed = new Map<string, number>()
  const goneListeners: ((node: string) => void)[] = []
  const changeListeners: (() => void)[] = []
  const returnListeners: (() => void)[] = []
  /** Its slot; undefined: it is no member. */
  let own: number | undefined
  let joined = 0
  let timer: NodeJS.Timeout | undefined
  let isBeating = false
  let comingBack: Promise<void> | undefined
  let isLeaving = false

  for await (const [key, value] of store.range(prefix)) members.set(slotOf(key), JSON.parse(value.toString()))
  store.onOthers(prefix, heard)
  store.onOthers(channel, (change) => {
    if ('tell' in change) missed.set(change.value.toString(), 0)
  })

  return {
    self,
    name,
    isShared: true,
    slot: () => own ?? 0,
    isLiving: (node) => memberOf(node) !== undefined,
    slotOf: (node) => memberOf(node)?.[0],
    living: () => [...members].sort(([a], [b]) => a - b).map(([, { node }]) => node),
    nameOf: (node) => memberOf(node)?.[1].name ?? node,
    isLeader: () => isFirst(() => true),
    onGone: (listener) => void goneListeners.push(listener),
    onChange: (listener) => void changeListeners.push(listener),
    onReturn: (listener) => void returnListeners.push(listener),

    async join(): Promise<void> {
      const former = previous === undefined ? undefined : memberOf(previous)
      if (former) await removeMember(...former).catch(isGoneAlready)
      await take()
      // Not before: with nobody else there it is this node that clears up behind its former self.
      if (former) tellGone(former[1].node)
      changed()
      await writeFile(idFile, self, { mode: 0o600 })
      timer = setInterval(() => void beat(), parts.heartbeatMs ?? heartbeatMs)
      log.info({ node: self, slot: own, nodes: members.size }, 'joined the other nodes')
    },

    async leave(): Promise<void> {
      isLeaving = true
      clearInterval(timer)
      await comingBack
      own = undefined
      const membership = memberOf(self)
      if (membership) await removeMember(...membership).catch(isGoneAlready)
    },
  }

  /** Takes the first free slot. Of two nodes that want the same one, the first commit has it. */
  async function take(): Promise<void> {
    for (let attempts = 0; !isLeaving; attempts++) {
      if (attempts > maxNodes) throw new Error('no slot could be taken')
      // One of its own is that of an attempt without an answer.
      const isFree = (slot: number) => (members.get(slot)?.node ?? self) === self
      const slot = Array.from({ length: maxNodes }, (_, index) => index).find(isFree)
      if (slot === undefined) throw new Error(`there are ${maxNodes} nodes already`)
      const member: Member = { node: self, name, number: ++joined }
      const [key, value] = [keyOfSlot(slot), JSON.stringify(member)]
      const former = members.get(slot)
      const when = former ? { value: JSON.stringify(former) } : 'absent'
      try {
        await store.enter([{ put: key, value, when }], { key, value })
      } catch (error) {
        if (error instanceof ConditionFailed) continue
        throw error
      }
      members.set(slot, member)
      own = slot
      changed()
      return
    }
  }

  /** Rejects with `ConditionFailed` where it is another member by now. */
  async function removeMember(slot: number, member: Member): Promise<void> {
    await store.commit([removal(slot, member)])
    if (members.get(slot)?.node === member.node) members.delete(slot)
  }

  function heard(change: Told): void {
    if ('tell' in change) return
    const slot = slotOf(keyOf(change))
    const before = members.get(slot)
    if ('put' in change) {
      const member: Member = JSON.parse(change.value.toString())
      members.set(slot, member)
      missed.set(member.node, 0)
    } else members.delete(slot)
    if (before && before.node === self) void comeBack()
    else if (before && 'del' in change) tellGone(before.node)
    changed()
  }

  function tellGone(node: string): void {
    missed.delete(node)
    log.warn({ node }, 'a node is gone')
    for (const listener of goneListeners) listener(node)
  }

  /** It was cut off from the store for so long that the others went on without it. */
  function comeBack(): Promise<void> {
    own = undefined
    comingBack ??= joinAgain().finally(() => {
      comingBack = undefined
    })
    return comingBack
  }

  async function joinAgain(): Promise<void> {
    if (isLeaving) return
    log.warn('the other nodes took this one for dead')
    try {
      await store.catchUp()
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
      if (own === undefined) await comeBack()
      await store.commit([{ tell: channel, value: self }])
      for (const { node } of members.values()) {
        if (node !== self) missed.set(node, (missed.get(node) ?? 0) + 1)
      }
      await bury()
    } catch (err) {
      if (err instanceof Fenced) await comeBack()
      else log.debug({ err }, 'sign of life not given')
    } finally {
      isBeating = false
    }
  }

  async function bury(): Promise<void> {
    const isSilent = (node: string) => node !== self && (missed.get(node) ?? 0) > patience
    if (!isFirst((node) => !isSilent(node))) return
    const silent = [...members].filter(([, { node }]) => isSilent(node))
    for (const [slot, member] of silent) await removeMember(slot, member)
    // Not before all are gone: one of them may have had the lowest slot.
    for (const [, { node }] of silent) tellGone(node)
    if (silent.length > 0) changed()
  }

  /** Whether this node has the lowest slot of those that count. One that is not there yet, or no longer, is none. */
  function isFirst(counts: (node: string) => boolean): boolean {
    const slot = own
    if (slot === undefined) return false
    return [...members].every(([other, { node }]) => other >= slot || !counts(node))
  }

  function memberOf(node: string): [slot: number, member: Member] | undefined {
    return [...members].find(([, member]) => member.node === node)
  }

  function changed(): void {
    for (const listener of changeListeners) listener()
  }
}

/** The others were first. */
function isGoneAlready(error: unknown): void {
  if (!(error instanceof ConditionFailed || error instanceof Fenced)) throw error
}

function removal(slot: number, member: Member): Change {
  return { del: keyOfSlot(slot), when: { value: JSON.stringify(member) } }
}

function keyOfSlot(slot: number): string {
  return `${prefix}${String(slot).padStart(2, '0')}`
}

function slotOf(key: string): number {
  return Number(key.slice(prefix.length))
}
