import type { Log } from '../../telemetry/log.ts'
import { ConditionFailed } from '../store.ts'
import type { FollowedStore } from './followed-store.ts'
import { keyOfSlot, type Member, type Members } from './members.ts'
import { maxNodes } from './nodes.ts'

/** Takes the slot that makes this node a member. If other nodes remove this node, `comeBack` takes a slot again. */
export function createOwnSlot(parts: {
  store: FollowedStore
  members: Members
  self: string
  /** The name of this node for operators. */
  name: string
  url: string | undefined
  log: Log
  /** Called when this node is a member again after a removal. */
  returned: () => void
}) {
  const { store, members, self, name, url, log, returned } = parts
  let own: number | undefined
  let joined = 0
  let comingBack: Promise<void> | undefined
  let isLeaving = false

  return {
    /** Undefined while this node is no member. */
    get: (): number | undefined => own,

    /** Whether this node has the lowest slot of the nodes for which `counts` is true. */
    isFirst: (counts: (node: string) => boolean): boolean =>
      own !== undefined && members.isFirst(own, counts),

    take,

    /** Joins again after the other nodes took this one for dead. Never rejects. */
    comeBack(): Promise<void> {
      own = undefined
      comingBack ??= joinAgain().finally(() => {
        comingBack = undefined
      })
      return comingBack
    },

    /** Forgets the slot, and never takes one again. */
    async leave(): Promise<void> {
      isLeaving = true
      await comingBack
      own = undefined
    },
  }

  async function take(): Promise<void> {
    for (let attempts = 0; !isLeaving; attempts++) {
      if (attempts > maxNodes) throw new Error('no slot could be taken')
      const slot = members.freeFor(self)
      if (slot === undefined) throw new Error(`there are ${maxNodes} nodes already`)
      const member: Member = { node: self, name, number: ++joined, ...(url !== undefined && { url }) }
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
