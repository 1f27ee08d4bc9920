import { setTimeout as delay } from 'node:timers/promises'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { controlTopic, playingTopic } from '../../events.ts'
import type { Random } from '../../random.ts'
import type { Issued } from '../../start-hub.ts'
import { until } from '../../until.ts'
import { type Client, enter } from './client.ts'
import type { ClusterNode } from './cluster.ts'
import type { FilterState, SessionRecord, Step } from './judge.ts'
import { markerOf } from './publishers.ts'

export type Hopper = ReturnType<typeof createHopper>

/**
 * A client that changes its filters, and moves its persistent session from node to node. The old connection ends with a
 * DISCONNECT, is cut, or stays open. A mortal client also ends its session at random moments.
 */
export function createHopper(parts: {
  clientId: string
  login: Issued
  livestreams: readonly [Livestream, ...Livestream[]]
  nodes: readonly [ClusterNode, ...ClusterNode[]]
  isMortal: boolean
  /** The client never leaves a node by itself. */
  stays: boolean
  random: Random
}) {
  const { clientId, login, livestreams, nodes, isMortal, stays, random } = parts
  const record: SessionRecord = { clientId, filters: [], endedAt: [], received: [] }
  /** CONNACKs in which a session is missing, or is present although it has ended. */
  const wrong: string[] = []
  const own = livestreams[random.below(livestreams.length)] ?? livestreams[0]
  const ownFilter = controlTopic(own)
  const others = livestreams.flatMap((livestream) => [
    `radio/${livestream.id}/#`,
    playingTopic(livestream),
    controlTopic(livestream),
  ])
  const filters = ['radio/+/control', 'radio/+/data', ...others].filter((filter) => filter !== ownFilter)
  let presence: 'absent' | 'present' | 'unknown' = 'absent'
  /** The client asked a node to end the session, and got no answer. A stopped node may read the request later. */
  let isEndUnanswered = false
  let client: Client | undefined
  const left: Client[] = []
  let connections = 0
  /** The visits of this client, for the report of a finding. */
  const steps: Step[] = []
  const step = (what: string) => steps.push({ at: performance.now(), what: `${clientId} ${what}` })

  return {
    record,
    wrong,
    steps,

    /** Acts until `isOver`. */
    async run(isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        try {
          await act()
        } catch {
          client?.cut()
          await delay(50)
        }
      }
    },

    /**
     * Connects the client to this node, and leaves it connected. The session then has `ownFilter`, which the client
     * never removes. Throws if all this takes longer than 60 s.
     */
    async visit(node: ClusterNode): Promise<void> {
      await until(async () => {
        try {
          await comeIn(node)
          return true
        } catch {
          return false
        }
      }, 60_000)
    },

    leave: () => Promise.all([...left, ...(client ? [client] : [])].map((each) => each.leave())),
  }

  async function act(): Promise<void> {
    if (!client?.isOpen) {
      await delay(random.happens(0.2) ? random.between(500, 4_000) : random.between(0, 200))
      if (isMortal && random.happens(0.25)) await endSession(random.oneOf(nodes))
      await comeIn(random.oneOf(nodes))
    }
    await delay(random.between(50, 900))
    const filter = filters[random.below(filters.length)] ?? ownFilter
    const granted = filters.filter((each) => stateOf(each) === 'granted')
    const chance = random.between(0, stays ? 0.6 : 1)
    if (chance < 0.35) await subscribe(filter)
    else if (chance < 0.6) await unsubscribe(granted[random.below(granted.length)] ?? filter)
    else if (chance < 0.7) {
      step('leaves')
      await client?.leave()
    } else if (chance < 0.8) {
      step('is cut off')
      client?.cut()
    } else if (chance < 0.9) await comeIn(random.oneOf(nodes))
  }

  async function comeIn(node: ClusterNode): Promise<void> {
    const before = presence
    if (client) left.push(client)
    client = undefined
    const entered = await enter(node, {
      login,
      clientId,
      clean: false,
      timeoutMs: random.between(2_500, 8_000),
      onMessage: receiver(),
      onSent: () => {
        step(`asks node ${node.index} for its session`)
        if (before === 'absent') presence = 'unknown'
      },
    })
    presence = 'present'
    client = entered
    const found = entered.sessionPresent ? '' : ', a new session'
    step(`is on node ${node.index}, connection ${connections}${found}`)
    if (!entered.sessionPresent) noteAll('removed')
    if (before === 'present' && !entered.sessionPresent) {
      // The client asked for the end of its session, and got no answer. A stopped node may have read that request only
      // now.
      if (isEndUnanswered) record.endedAt.push(performance.now())
      else complain('its session is gone', node)
    }
    if (!entered.sessionPresent) isEndUnanswered = false
    if (before === 'absent' && entered.sessionPresent) complain('its session is back from the dead', node)
    if (stateOf(ownFilter) !== 'granted') await subscribe(ownFilter)
  }

  async function endSession(node: ClusterNode): Promise<void> {
    const entered = await enter(node, {
      login,
      clientId,
      clean: true,
      onMessage: receiver(),
      onSent: () => {
        const now = performance.now()
        record.endedAt.push(now)
        step(`asks node ${node.index} for its end`)
        presence = 'unknown'
        isEndUnanswered = true
        noteAll('unknown')
      },
    })
    presence = 'absent'
    isEndUnanswered = false
    noteAll('removed')
    step('ended')
    if (entered.sessionPresent) complain('a clean session is resumed', node)
    await entered.leave()
  }

  async function subscribe(filter: string): Promise<void> {
    // If the filter is granted already, it stays granted until the new SUBACK.
    if (stateOf(filter) !== 'granted') note(filter, 'unknown')
    const code = await client?.subscribe(filter)
    note(filter, code === 1 ? 'granted' : 'removed')
  }

  async function unsubscribe(filter: string): Promise<void> {
    note(filter, 'unknown')
    await client?.unsubscribe(filter)
    note(filter, 'removed')
  }

  /** Returns a listener that records the messages of one connection. */
  function receiver(): (packet: { payload: Buffer | string; retain: boolean; dup: boolean }) => void {
    const connection = ++connections
    return ({ payload, retain: isRetained, dup: isDuplicate }) => {
      const at = performance.now()
      record.received.push({ marker: markerOf(payload), at, isRetained, isDuplicate, connection })
    }
  }

  function stateOf(filter: string): FilterState['state'] | undefined {
    return record.filters.findLast((each) => each.filter === filter)?.state
  }

  function noteAll(state: FilterState['state']): void {
    for (const filter of new Set(record.filters.map((each) => each.filter))) note(filter, state)
  }

  function note(filter: string, state: FilterState['state']): void {
    record.filters.push({ at: performance.now(), filter, state })
  }

  function complain(about: string, node: ClusterNode): void {
    const visits = steps
      .slice(-8)
      .map(({ at, what }) => `${Math.round(at)} ${what}`)
      .join(', then ')
    wrong.push(`${clientId}: ${about}, says node ${node.index}; ${visits}`)
  }
}
