import type { Log } from '../../telemetry/log.ts'
import { ConditionFailed } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import { keyOfSlot, type Member, type Members } from './members.ts'
import { maxNodes } from './nodes.ts'

/** The slot of this node, which makes it a member: taken, lost when the others go on without it, and taken again. */
export function createOwnSlot(parts: {
  store: FollowedStore
  members: Members
  self: string
  /** For operators. */
  name: string
  log: Log
  /** This node is a member from now on. */
  taken: () => void
  /** It was taken for dead, and is a member again. */
  returned: () => void
}) {
  const { store, members, self, name, log, taken, returned } = parts
  let own: number | undefined
  let joined = 0
  let comingBack: Promise<void> | undefined
  let isLeaving = false

  return {
    /** Undefined: it is no member. */
    get: (): number | undefined => own,

    /** Whether it is the lowest of those whose node counts. */
    isFirst: (counts: (node: string) => boolean): boolean =>
      own !== undefined && members.isFirst(own, counts),

    take,

    /** The store was out of reach for so long that the others went on without this node. Never rejects. */
    comeBack(): Promise<void> {
      own = undefined
      comingBack ??= joinAgain().finally(() => {
        comingBack = undefined
      })
      return comingBack
    },

    /** Takes no slot any more. */
    async leave(): Promise<void> {
      isLeaving = true
      await comingBack
      own = undefined
    },
  }

  /** Takes the first free slot. Of two nodes that want the same one, the first commit has it. */
  async function take(): Promise<void> {
    for (let attempts = 0; !isLeaving; attempts++) {
      if (attempts > maxNodes) throw new Error('no slot could be taken')
      const slot = members.freeFor(self)
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
      taken()
      return
    }
  }

  async function joinAgain(): Promise<void> {
    if (isLeaving) return
    log.warn('the other nodes took this one for dead')
    try {
      await store.catchUp()
      await take()
      if (!isLeaving) returned()
    } catch (err) {
      log.error({ err }, 'not joined again')
    }
  }
}
