import type { EventRow } from '../../journal/history/event-row.ts'
import { refusal } from '../errors.ts'

/** Maximum number of events that wait for a slow client. */
const maxWaiting = 1_000
/** Maximum number of clients that follow events at the same time. */
const maxTails = 20

/** An event, or how many events are left out at this place. */
type TailLine = EventRow | { leftOut: number }

/** Sends events to clients as they are decided. A client that reads too slowly misses events, and gets their number. */
export function createTail(onDecided: (listener: (row: EventRow) => void) => () => void) {
  let tails = 0

  return (isMeant: (row: EventRow) => boolean): AsyncIterableIterator<TailLine> => {
    if (tails >= maxTails) throw refusal(`${maxTails} others follow events already`)
    tails++
    const waiting: EventRow[] = []
    let leftOut = 0
    let isOver = false
    let wake = () => {}
    const leave = onDecided((row) => {
      if (!isMeant(row)) return
      // Once an event is left out, all further events are left out too, until the client has read the line `leftOut`.
      // So this line stands exactly where the events are missing.
      if (leftOut > 0 || waiting.length >= maxWaiting) leftOut++
      else waiting.push(row)
      wake()
    })
    const lines: AsyncIterableIterator<TailLine> = {
      [Symbol.asyncIterator]: () => lines,
      async next() {
        while (!isOver && waiting.length === 0 && leftOut === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
        if (isOver) return { value: undefined, done: true }
        const row = waiting.shift()
        if (row) return { value: row, done: false }
        const value = { leftOut }
        leftOut = 0
        return { value, done: false }
      },
      async return() {
        if (!isOver) {
          isOver = true
          tails--
          leave()
          wake()
        }
        return { value: undefined, done: true }
      },
    }
    return lines
  }
}
