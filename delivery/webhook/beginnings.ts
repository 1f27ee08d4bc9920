import { createLocks } from '../../store/lock.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { createRunningWork } from '../../store/running-work.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'
import type { Log } from '../../telemetry/log.ts'
import type { EarlierMessage } from '../queue/work-item.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import { retryChange } from '../runner/retry.ts'
import type { Selected } from './selected.ts'
import { isOfBeginning, type PushSubscription } from './subscription.ts'
import type { PushSubscriptions } from './subscriptions.ts'

const question = 'knows-subscription'

/**
 * Puts the events accepted since `from` into the queue of a new webhook.
 *
 * The stored subscription has the mark `isBeginning`. Until the mark is removed, new events go into the queue, and
 * nothing is sent. After a crash, a node starts over, and adds no event twice: docs/decisions, "A webhook that
 * begins with earlier events is marked until it has them".
 */
export function createBeginnings(parts: {
  store: Store
  journal: {
    /** The position of the last message that this node knows of. */
    head(): number
  }
  /** Finds the newest events of a webhook since a time, in the order of the journal. */
  earlierOf: (selected: Selected, since: number) => Promise<EarlierMessage[]>
  nodes: Nodes
  calls: Calls
  subscriptions: Pick<PushSubscriptions, 'find' | 'list' | 'endBeginning' | 'unchanged' | 'onHeard'>
  queues: Pick<WorkQueues, 'begin'>
  /** Whether this node works off the queue of a subscription. */
  isOwn: (name: string) => boolean
  /** Why the hub sends nothing to webhooks any more. Undefined: it still sends. */
  whyClosed: () => string | undefined
  /** Called when the queue of a subscription holds the earlier events. */
  onFilled: (name: string) => void
  log: Log
}) {
  const { store, journal, earlierOf, nodes, calls, subscriptions, queues, isOwn, whyClosed } = parts
  const { onFilled, log } = parts
  const oneByOne = createLocks()
  const stopping = new AbortController()
  const running = createRunningWork()
  const beginning = new Set<string>()
  calls.serve(question, (name) => subscriptions.find(String(name)) !== undefined)

  return {
    look,

    start(): void {
      subscriptions.onHeard(look)
      nodes.onChange(lookAtAll)
      lookAtAll()
    },

    async stop(): Promise<void> {
      stopping.abort()
      await running.ended()
    },
  }

  function lookAtAll(): void {
    for (const { name } of subscriptions.list()) look(name)
  }

  /** Begins a marked subscription if this node works off its queue. */
  function look(name: string): void {
    if (beginning.has(name) || !dueOf(name)) return
    beginning.add(name)
    running.add(untilBegun(name).finally(() => beginning.delete(name)))
  }

  function dueOf(name: string): PushSubscription | undefined {
    const subscription = subscriptions.find(name)
    if (stopping.signal.aborted || !subscription?.isBeginning || whyClosed() !== undefined) return undefined
    return isOwn(name) ? subscription : undefined
  }

  async function untilBegun(name: string): Promise<void> {
    // One subscription at a time: hundreds at once would fill the memory with their events.
    const attempt = () =>
      oneByOne.hold('', async () => {
        const due = dueOf(name)
        if (due) await begin(due)
      })
    const failed = (err: unknown) => {
      // `ConditionFailed`: the subscription has changed. This node has the change by now, and decides again.
      if (!(err instanceof ConditionFailed)) log.warn({ err, queue: name }, 'webhook does not begin yet')
    }
    const isWanted = () => dueOf(name) !== undefined
    while (isWanted()) await untilDone(attempt, { failed, isWanted, signal: stopping.signal })
  }

  async function begin(subscription: PushSubscription): Promise<void> {
    const { name, from = '' } = subscription
    const ifUnchanged = subscriptions.unchanged(name)
    await untilKnown(name, ifUnchanged)
    const head = journal.head()
    const earlier = await earlierOf(subscription, Date.parse(from))
    const missed = earlier.filter(({ position }) => position <= head)
    const described = missed.map((message) => ({
      ...message,
      describe(of: Parameters<typeof message.describe>[0]) {
        const about = message.describe(of)
        return about && isOfBeginning(subscription, about.messageId) ? about : undefined
      },
    }))
    await queues.begin(name, described, ifUnchanged)
    await subscriptions.endBeginning(name, [retryChange(name)])
    onFilled(name)
  }

  /**
   * Asks all other nodes. Resolves when all of them know the subscription, and put new events into its queue. Rejects
   * if a node is silent, or does not know the subscription yet.
   *
   * Before a node knew the subscription, it may have accepted events and made no items of the subscription for them.
   * The node stores these events before it answers. So when this function resolves, the asking node has received these
   * events, and can add the missing items.
   */
  async function untilKnown(name: string, ifUnchanged: Change): Promise<void> {
    await store.commit([ifUnchanged])
    const knowing = new Map(await calls.askOthers(question, name))
    const silent = nodes.living().find((node) => node !== nodes.self && knowing.get(node) !== true)
    if (silent !== undefined) throw new Error(`${nodes.nameOf(silent)} does not know it yet`)
  }
}
