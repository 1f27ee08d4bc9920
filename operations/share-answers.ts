import { operations } from './operations.ts'
import type { Perform, Performed } from './perform.ts'

/** Longest age of a shared answer, milliseconds. Every page of the console waits longer between two requests. */
const sharedMs = 1_000
/** Longest request whose answer is shared, characters. The requests of pages are shorter. */
const maxQuestion = 500

/**
 * Callers that send the same request within a second share one answer. Twenty consoles then cost little more than one
 * console. A shared answer must not depend on one caller, so commands that only read do not ask `isStillAllowed`. A
 * command that changes something discards the shared answers.
 */
export function shareAnswers(perform: Perform): Perform {
  const answers = new Map<string, Promise<Performed>>()

  return (name, args, who, isStillAllowed) => {
    if (!isReading(name)) return perform(name, args, who, isStillAllowed).finally(() => answers.clear())
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
