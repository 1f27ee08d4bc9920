import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls `send` for each event when it is due, also while those before have no answer: otherwise a system that stands
 * still would get fewer events, and its delays would count once. `due`: the time to measure from. Resolves when all are answered.
 */
export async function atPace(
  { events, rate }: { events: number; rate: number },
  send: (index: number, due: number) => Promise<unknown>,
): Promise<void> {
  const began = performance.now()
  const answers: Promise<unknown>[] = []
  for (let index = 0; index < events; index++) {
    const due = began + (index * 1000) / rate
    const early = due - performance.now()
    if (early > 0) await delay(early)
    const answer = send(index, due)
    // `Promise.all` reports the error later. Without this handler, an earlier rejection would end the process.
    answer.catch(() => {})
    answers.push(answer)
  }
  await Promise.all(answers)
}
