import { createPacing } from '../../listener/pacing.ts'

export type ReturnTurns = ReturnType<typeof createReturnTurns>

/**
 * How much of a turn of the event loop the returns of persistent sessions may take, over all sessions. After a crash
 * thousands come back at once, and an event must not wait for them: each of its steps waits for a turn. A message costs
 * some 40 µs, a log-in or a choice 1 to 3 ms.
 */
const perTurn = { logIn: 1, choice: 1, message: 48 }

/** Lets the steps of returns through in turns. Serves askers alternately, and keeps the order of each. */
export function createReturnTurns() {
  const pacings = {
    logIn: createPacing(perTurn.logIn),
    choice: createPacing(perTurn.choice),
    message: createPacing(perTurn.message),
  }

  return {
    /** Resolves when this step may be done. */
    enter: (step: keyof typeof perTurn, asker: string): Promise<void> => pacings[step].turn({ asker }),
  }
}
