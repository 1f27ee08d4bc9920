import fc from 'fast-check'
import t from 'tap'
import { attempt, hour, type OpenQueues, openQueues } from '../../../delivery/open-queues.ts'

/*
 * Random operations on queues, with a store that sometimes fails. After a restart, the queues must have every message
 * that was not acknowledged, even if the journal was trimmed. Empty queues must leave nothing in the store.
 */

const names = ['a', 'b'] as const
type Name = (typeof names)[number]

interface Step {
  act:
    | 'append'
    | 'acknowledge'
    | 'postpone'
    | 'setAside'
    | 'giveUp'
    | 'giveUpAll'
    | 'replay'
    | 'drop'
    | 'tidy'
    | 'trim'
  queue: Name
  /**
   * What `true` means depends on `act`:
   *
   * - `append`: the step appends to both queues.
   * - `postpone`: the item was refused, and is set aside.
   * - `tidy`: every item is busy.
   */
  both: boolean
  which: 'head' | 'second' | 'due'
  fate: 'stored' | 'fails'
  /** Whether the next step waits for the end of all steps so far. */
  waits: boolean
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record<Step>({
    act: fc.oneof(
      { weight: 4, arbitrary: fc.constant('append') },
      { weight: 3, arbitrary: fc.constant('acknowledge') },
      {
        weight: 8,
        arbitrary: fc.constantFrom(
          ...(['postpone', 'setAside', 'giveUp', 'giveUpAll', 'replay', 'drop', 'tidy', 'trim'] as const),
        ),
      },
    ),
    queue: fc.constantFrom(...names),
    both: fc.boolean(),
    which: fc.constantFrom('head', 'second', 'due'),
    fate: fc.oneof(
      { weight: 3, arbitrary: fc.constant('stored') },
      { weight: 1, arbitrary: fc.constant('fails') },
    ),
    waits: fc.boolean(),
  }),
  { maxLength: 40 },
)

/** Performs the steps. Returns the ids of the messages that each queue must still have. */
async function play(one: OpenQueues, sequence: readonly Step[], failure: 'refused' | 'torn') {
  const { queues, memory, time } = one
  const owed: Record<Name, Set<string>> = { a: new Set(), b: new Set() }
  let running: Promise<unknown>[] = []
  let count = 0
  const settled = async () => {
    await Promise.all(running)
    running = []
  }

  async function perform({ act, queue, both, which }: Step): Promise<unknown> {
    const item = queues.waiting(queue)[which]
    if (act === 'append') {
      const id = String(++count)
      const targets = both ? names : [queue]
      if (await one.append(id, ...targets)) for (const name of targets) owed[name].add(id)
      return undefined
    }
    if (act === 'giveUpAll') return queues.giveUpAll(queue, 'no reason')
    if (act === 'replay') return queues.replay(queue)
    if (act === 'tidy') return queues.tidy(() => both)
    if (act === 'trim') return one.trim()
    if (act === 'drop') {
      owed[queue].clear()
      return queues.drop(queue)
    }
    if (!item) return undefined
    if (act === 'acknowledge') {
      owed[queue].delete(item.messageId)
      return queues.acknowledge(queue, item)
    }
    if (act === 'setAside') return queues.setAside(queue, item, time.now + hour / 2)
    if (act === 'giveUp') return queues.giveUp(queue, [item], 'no reason')
    const asideUntil = both ? { asideUntil: time.now + hour / 2 } : {}
    return queues.postpone(queue, item, attempt(item.messageId), { refused: both, ...asideUntil })
  }

  for (const step of sequence) {
    // Before a drop, wait for all earlier steps. A message that is appended during the drop may remain or not, so
    // `owed` could be wrong.
    if (step.act === 'drop') await settled()
    memory.judge(() => (step.fate === 'fails' ? failure : 'stored'))
    time.now += hour / 4
    running.push(perform(step).catch(() => undefined))
    if (step.waits || step.act === 'drop') await settled()
  }
  await settled()
  memory.judge(() => 'stored')
  return owed
}

/** The ids of all messages of a queue, dead letters included. */
async function giveBack(one: OpenQueues, name: Name): Promise<string[]> {
  await one.queues.replay(name)
  return (await one.drain(name)).sort()
}

function leftovers({ memory, trim }: OpenQueues): string[] {
  trim()
  const prefixes = ['work/', 'work-dead/', 'journal/', 'work-shared/', 'work-set/', 'work-set-used/']
  return [...prefixes, 'work-place/'].flatMap(memory.keys)
}

for (const alike of [false, true]) {
  const how = alike ? 'items that queues share' : 'items of one queue each'
  onRefusingStore(how, alike)
  onTornStore(how, alike)
}

function onRefusingStore(how: string, alike: boolean) {
  t.test(`${how}, on a store that refuses now and then`, { timeout: 120_000 }, async (t) => {
    const holds = fc.asyncProperty(steps, async (sequence) => {
      const one = await openQueues({ alike })
      const owed = await play(one, sequence, 'refused')
      const found = await one.reopen()
      for (const name of names) {
        if (JSON.stringify(found.view(name)) !== JSON.stringify(one.view(name))) {
          throw new Error(`memory is not the store: ${name}`)
        }
      }
      for (const queues of [one, found]) {
        for (const name of names) {
          const given = await giveBack(queues, name)
          const missing = [...owed[name]].filter((id) => !given.includes(id))
          const isDoubled = new Set(given).size < given.length
          if (missing.length > 0 || isDoubled || given.includes('wrong payload')) {
            throw new Error(`owed to ${name}: ${[...owed[name]]}, found: ${given}`)
          }
        }
        await queues.queues.tidy(() => false)
        if (leftovers(queues).length > 0) throw new Error(`left: ${leftovers(queues)}`)
      }
    })
    await t.resolves(fc.assert(holds, { numRuns: 300 }))
  })
}

function onTornStore(how: string, alike: boolean) {
  t.test(
    `${how}, on a store that refuses what it finds after the restart`,
    { timeout: 120_000 },
    async (t) => {
      const holds = fc.asyncProperty(steps, async (sequence) => {
        const one = await openQueues({ alike })
        const owed = await play(one, sequence, 'torn')
        const found = await one.reopen()
        for (const name of names) {
          const given = new Set(await giveBack(found, name))
          const missing = [...owed[name]].filter((id) => !given.has(id))
          if (missing.length > 0) throw new Error(`lost in ${name}: ${missing}`)
        }
        await found.queues.tidy(() => false)
        if (leftovers(found).length > 0) throw new Error(`left: ${leftovers(found)}`)
      })
      await t.resolves(fc.assert(holds, { numRuns: 300 }))
    },
  )
}
