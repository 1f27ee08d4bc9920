import { checked } from '../checked-reads.ts'
import { storeKeys } from '../keys.ts'
import type { FollowedStore } from './followed-store.ts'
import { maxNodes } from './nodes.ts'

/** Prefix of the stored members: `member/03` holds the `Member` with slot 3 (`Nodes.slot`). */
export const membersPrefix = storeKeys.member.prefix

export interface Member {
  node: string
  /** The name of the node for operators. */
  name: string
  /**
   * How often the node has joined. This number makes the stored value of each membership different. So Redis can refuse
   * commits of an earlier membership.
   */
  number: number
  /** The URL of its HTTPS port for the other nodes. Undefined: the system chooses the port, after the node has joined. */
  url?: string
}

export type Members = Awaited<ReturnType<typeof loadMembers>>

/** Loads the members into memory, by slot. `set` and `delete` change only the memory. */
export async function loadMembers(store: FollowedStore) {
  const members = new Map<number, Member>()
  for await (const [key, value] of checked(store.range(membersPrefix)))
    members.set(slotOf(key), JSON.parse(value.toString()))

  return {
    get: (slot: number): Member | undefined => members.get(slot),
    set: (slot: number, member: Member): void => void members.set(slot, member),
    delete: (slot: number): void => void members.delete(slot),
    all: (): [slot: number, member: Member][] => [...members].sort(([a], [b]) => a - b),
    of: (node: string): [slot: number, member: Member] | undefined =>
      [...members].find(([, member]) => member.node === node),

    /**
     * The first slot that is free or already stored for `node`. Redis may have stored the slot in an earlier attempt
     * without answering.
     */
    freeFor(node: string): number | undefined {
      const slots = Array.from({ length: maxNodes }, (_, slot) => slot)
      return slots.find((slot) => (members.get(slot)?.node ?? node) === node)
    },

    /** Whether no lower slot belongs to a node for which `counts` is true. */
    isFirst: (slot: number, counts: (node: string) => boolean): boolean =>
      [...members].every(([other, { node }]) => other >= slot || !counts(node)),

    /** Removes a member from the store. Rejects with `ConditionFailed` if the slot no longer has this member. */
    async remove(slot: number, member: Member): Promise<void> {
      await store.commit([{ del: keyOfSlot(slot), when: { value: JSON.stringify(member) } }])
      if (members.get(slot)?.node === member.node) members.delete(slot)
    },
  }
}

export function keyOfSlot(slot: number): string {
  return `${membersPrefix}${String(slot).padStart(2, '0')}`
}

export function slotOf(key: string): number {
  return Number(key.slice(membersPrefix.length))
}
