import type { HubAnswer } from '../page/ask.ts'
import { askAsReader } from '../page/session.ts'

/** Pause after an answer that is not good, seconds, if the hub names none. */
const retrySeconds = 10

/**
 * Asks a route again and again, until the returned function is called. `take` gets each answer. `everyMs`: the pause
 * after a good one, milliseconds.
 */
export function askAgain(path: string, everyMs: number, take: (answer: HubAnswer) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  void ask()
  return () => {
    isOver = true
    clearTimeout(timer)
  }

  async function ask(): Promise<void> {
    const answer = await askAsReader('GET', path)
    if (isOver) return
    take(answer)
    const waitMs = answer.status === 200 ? everyMs : (answer.retryAfter ?? retrySeconds) * 1000
    timer = setTimeout(() => void ask(), waitMs)
  }
}
