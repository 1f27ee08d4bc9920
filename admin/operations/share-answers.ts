import { type OperationName, operations } from './operations.ts'
import type { Perform, Performed } from './perform.ts'

/** What consoles ask again and again by themselves, whoever looks at them. */
const shared: ReadonlySet<string> = new Set<OperationName>([
  ...(['status', 'trend', 'queues.list', 'events.list', 'events.newest'] as const),
])
/** How old a shared answer may be, milliseconds: less than the pause of any page. */
const sharedMs = 1_000
/** Longer questions are not those of a page. */
const maxQuestion = 500

/**
 * Lets those who ask the same within a second share an answer: publishers wait no longer for twenty consoles than for one.
 * After a command that changes something, everybody is answered anew.
 */
export function shareAnswers(perform: Perform, now = () => performance.now()): Perform {
  const answers = new Map<string, { at: number; answer: Promise<Performed> }>()

  return async (name, args, who) => {
    if (!isReading(name)) return perform(name, args, who).finally(() => answers.clear())
    const question = shared.has(name) ? JSON.stringify([name, args]) : ''
    if (question === '' || question.length > maxQuestion) return perform(name, args, who)
    forgetOld()
    const known = answers.get(question)
    if (known) return known.answer
    const answer = perform(name, args, who)
    answers.set(question, { at: now(), answer })
    return answer
  }

  /** The oldest are the first. */
  function forgetOld(): void {
    for (const [question, { at }] of answers) {
      if (now() - at < sharedMs) return
      answers.delete(question)
    }
  }
}

function isReading(name: string): boolean {
  return Object.entries(operations).some(([one, { effect }]) => one === name && effect === 'none')
}
