import { createHash } from 'node:crypto'
import type { Calls } from '../../store/nodes/calls.ts'
import type { ConfiguredOutput } from '../outputs/outputs.ts'

/**
 * Knows which outputs other nodes have in their configurations, which may differ: while they are changed one after the
 * other, or for long. An output is the same where it has the same livestreams.
 */
export function createOthersOutputs(configured: readonly ConfiguredOutput[], calls: Calls) {
  const own = Object.fromEntries(configured.map((output) => [output.name, digestOf(output)]))
  /** By node the names of outputs that it does not have. */
  const lacking = new Map<string, ReadonlySet<string>>()
  calls.serve('outputs-configured', () => own)

  return {
    /** Whether a node lacks an output, by its last answer. False: it has it, or has not answered. */
    lacks: (node: string, name: string): boolean => lacking.get(node)?.has(name) ?? false,

    /** Asks all other nodes. False: one does not know the question, or not yet. */
    async ask(): Promise<boolean> {
      const answers = await calls.askOthers('outputs-configured', null)
      lacking.clear()
      for (const [node, answer] of answers) {
        // A node that is starting answers null.
        const theirs: Record<string, unknown> = Object(answer)
        lacking.set(node, new Set(Object.keys(own).filter((name) => theirs[name] !== own[name])))
      }
      return answers.every(([, answer]) => answer !== null)
    },
  }
}

function digestOf({ livestreams }: ConfiguredOutput): string {
  return createHash('sha1').update(Object.keys(livestreams).sort().join()).digest('hex')
}
