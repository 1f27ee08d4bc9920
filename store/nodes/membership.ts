import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Log } from '../../telemetry/log.ts'
import { ConditionFailed, Fenced } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import { loadMembers, type Member, membersPrefix, slotOf } from './members.ts'
import type { Nodes } from './nodes.ts'
import { createOwnSlot } from './own-slot.ts'
import { createSignsOfLife } from './signs-of-life.ts'

export interface Membership extends Nodes {
  /** Makes this node a member. From now on, it receives the changes of other nodes. */
  join(isUrgent?: () => boolean): Promise<void>
  leave(): Promise<void>
}

/**
 * Knows the living nodes, and makes this node one of them. Nodes take and free slots (`Nodes.slot`) by commits, which
 * all nodes see in the same order. The commits of a removed node fail until the node has joined again:
 * docs/decisions, "A fence, not a lease by time".
 */
export async function createMembership(parts: {
  store: FollowedStore
  /** Host and process, for operators. */
  name: string
  /** Where the other nodes reach this one without the store (`Member.url`). */
  url?: string | undefined
  /** Path of a file with the id of this node. The next start removes the member with this id. */
  idFile: string
  /** Called when this node has missed changes, and must load everything again. */
  onGap: (reason: Error) => void
  log: Log
  heartbeatMs?: number
}): Promise<Membership> {
  const { store, name, url, idFile, onGap, log } = parts
  const self = randomUUID()
  const previous = await readFile(idFile, 'utf8').catch(() => undefined)
  const members = await loadMembers(store)
  const goneListeners: ((node: string) => void)[] = []
  const changeListeners: (() => void)[] = []
  const returnListeners: (() => void)[] = []
  const touchListeners: ((isInTouch: boolean) => void)[] = []
  const own = createOwnSlot({
    store,
    members,
    self,
    name,
    url,
    log,
    returned() {
      changed()
      for (const listener of returnListeners) listener()
    },
  })
  store.onOthers(membersPrefix, heard)
  const signs = createSignsOfLife({
    store,
    members,
    self,
    own,
    log,
    intervalMs: parts.heartbeatMs,
    removed(nodes) {
      for (const node of nodes) tellGone(node)
      changed()
    },
    touched(isInTouch) {
      for (const listener of touchListeners) listener(isInTouch)
    },
  })

  return {
    self,
    name,
    isShared: true,
    slot: () => own.get() ?? 0,
    isLiving: (node) => members.of(node) !== undefined,
    slotOf: (node) => members.of(node)?.[0],
    living: () => members.all().map(([, { node }]) => node),
    urlOf: (node) => members.of(node)?.[1].url,
    nameOf: (node) => members.of(node)?.[1].name ?? node,
    isLeader: () => own.isFirst(() => true),
    onGone: (listener) => void goneListeners.push(listener),
    onChange: (listener) => void changeListeners.push(listener),
    onReturn: (listener) => void returnListeners.push(listener),
    isInTouch: signs.isInTouch,
    onTouch: (listener) => void touchListeners.push(listener),

    async join(isUrgent): Promise<void> {
      store.startFollowing(onGap, isUrgent)
      const former = previous === undefined ? undefined : members.of(previous)
      if (former) await members.remove(...former).catch(isGoneAlready)
      await own.take()
      // Call `tellGone` only after `take`, which may make this node the leader: only the leader removes what the former
      // id left.
      if (former) tellGone(former[1].node)
      changed()
      // Before the file: with a slow disk the other nodes would remove a member that gives no sign.
      signs.start()
      await writeFile(idFile, self, { mode: 0o600 })
      log.info({ node: self, slot: own.get(), nodes: members.all().length }, 'joined the other nodes')
    },

    async leave(): Promise<void> {
      signs.stop()
      await own.leave()
      const membership = members.of(self)
      if (membership) await members.remove(...membership).catch(isGoneAlready)
    },
  }

  function heard(key: string, value: Buffer | undefined): void {
    const slot = slotOf(key)
    const before = members.get(slot)
    if (value) {
      const member: Member = JSON.parse(value.toString())
      members.set(slot, member)
      signs.joined(member.node)
    } else members.delete(slot)
    if (before && before.node === self) void own.comeBack()
    else if (before && !value) tellGone(before.node)
    changed()
  }

  function tellGone(node: string): void {
    signs.gone(node)
    log.warn({ node }, 'a node is gone')
    for (const listener of goneListeners) listener(node)
  }

  function changed(): void {
    for (const listener of changeListeners) listener()
  }
}

/** Ignores the error if another node has already removed the member. */
function isGoneAlready(error: unknown): void {
  if (!(error instanceof ConditionFailed || error instanceof Fenced)) throw error
}
