import { randomUUID } from 'node:crypto'
import { startDeadline } from '../deadline.ts'
import type { Store } from '../store.ts'
import type { Nodes } from './nodes.ts'

/** Longest wait for an answer, milliseconds. A living node answers most questions at once. */
const usualMs = 1_500

export type Calls = ReturnType<typeof createCalls>

/** Answers a question of another node; the result must survive JSON. */
type Handler = (args: unknown) => Promise<unknown> | unknown

/** Lets nodes ask each other questions, through `tell` changes in the shared store. */
export function createCalls({ store, nodes }: { store: Store; nodes: Pick<Nodes, 'self' | 'living'> }) {
  const handlers = new Map<string, Handler>()
  const waiting = new Map<string, (result: unknown) => void>()

  store.onTold('call', (value) => {
    const call: Call = JSON.parse(value.toString())
    if (call.to === nodes.self) void answer(call)
  })
  store.onTold('answer', (value) => {
    const { id, result }: CallAnswer = JSON.parse(value.toString())
    waiting.get(id)?.(result)
  })

  return {
    /** Sets the function with which this node answers the question `name`. */
    serve: (name: string, handler: Handler): void => void handlers.set(name, handler),

    /** Asks one node. Resolves with undefined when that node does not answer within `patienceMs`. */
    ask,

    /** Whether this node waits for an answer. */
    isAsking: (): boolean => waiting.size > 0,

    askOthers,

    /** What all other living nodes answer. Leaves out null, and nodes that do not answer in time. */
    async answersOfOthers<Answer>(name: string, args: unknown): Promise<Answer[]> {
      const answers = (await askOthers(name, args)) as [node: string, answer: Answer | null][]
      return answers.map(([, answer]) => answer).filter((answer) => answer !== null)
    },
  }

  /** Asks all other living nodes. Leaves out nodes that do not answer in time. Null: the node has nothing to say, or is starting. */
  async function askOthers(name: string, args: unknown): Promise<[node: string, result: unknown][]> {
    const others = nodes.living().filter((node) => node !== nodes.self)
    const results = await Promise.all(
      others.map(async (node) => [node, await ask(node, name, args)] as const),
    )
    return results.flatMap(([node, result]) => (result === undefined ? [] : [[node, result]]))
  }

  async function ask(to: string, name: string, args: unknown, patienceMs = usualMs): Promise<unknown> {
    // A node does not receive its own `tell`.
    if (to === nodes.self) return resultOf(name, args)
    const id = randomUUID()
    let endWait = () => {}
    const answered = new Promise<unknown>((resolve) => {
      endWait = startDeadline(patienceMs, () => resolve(undefined))
      waiting.set(id, resolve)
    })
    try {
      const call: Call = { id, from: nodes.self, to, name, args }
      await store.commit([{ tell: 'call', value: JSON.stringify(call) }])
      return await answered
    } finally {
      endWait()
      waiting.delete(id)
    }
  }

  async function resultOf(name: string, args: unknown): Promise<unknown> {
    return (await handlers.get(name)?.(args)) ?? null
  }

  async function answer({ id, name, args }: Call): Promise<void> {
    try {
      const result = await resultOf(name, args)
      await store.commit([{ tell: 'answer', value: JSON.stringify({ id, result } satisfies CallAnswer) }])
    } catch {
      // The node that asked goes on after its timeout.
    }
  }
}

interface Call {
  id: string
  from: string
  to: string
  name: string
  args: unknown
}

interface CallAnswer {
  id: string
  result: unknown
}
