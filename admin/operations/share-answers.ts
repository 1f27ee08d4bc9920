import { operations } from './operations.ts'
import type { Perform, Performed } from './perform.ts'

/** How old a shared answer may be, milliseconds: less than the pause of any page. */
const sharedMs = 1_000
/** Longer questions are not those of a page. */
const maxQuestion = 500

/**
 * Lets those who ask the same within a second share an answer: publishers wait no longer for twenty consoles than for one.
 * After a command that changes something, everybody is answered anew.
 */
export function shareAnswers(perform: Perform): Perform {
  const answers = new Map<string, Promise<Performed>>()

  return (name, args, who) => {
    if (!isReading(name)) return perform(name, args, who).finally(() => answers.clear())
    const question = JSON.stringify([name, args])
    if (question.length > maxQuestion) return perform(name, args, who)
    const known = answers.get(question)
    if (known) return known
    const answer = perform(name, args, who)
    answers.set(question, answer)
    setTimeout(() => answers.delete(question), sharedMs).unref()
    return answer
  }
}

function isReading(name: string): boolean {
  return Object.entries(operations).some(([one, { effect }]) => one === name && effect === 'none')
}
