import { createNewestFirst, type Sendable } from '../../client/newest-first.ts'
import { playing, station } from '../events.ts'

/** Every order of four start times for one livestream, with every choice of what is refused. */
export const games = permutations([0, 1, 2, 2]).flatMap((starts) =>
  Array.from({ length: 16 }, (_, mask) => ({
    starts,
    isRefused: (index: number) => (mask & (1 << index)) !== 0,
  })),
)

/** Sends what is due, one after the other. Returns what became of each, by its place. */
export function play(starts: readonly number[], isRefused: (index: number) => boolean) {
  const ends = { published: [] as number[], refused: [] as number[], superseded: [] as number[] }
  const order = createNewestFirst<Sendable>()
  const all = starts.map((start) => waiting(playing(station(), { start: `2026-01-31T12:0${start}:00Z` })))
  order.hold(all)
  const due = all.filter((item) => !order.isHeld(item))
  for (let item = due.shift(); item; item = due.shift()) {
    const index = all.indexOf(item)
    if (isRefused(index)) ends.refused.push(index)
    else {
      ends.published.push(index)
      for (const old of order.published(item)) {
        ends.superseded.push(all.indexOf(old))
        due.push(...order.left(old))
      }
    }
    due.push(...order.left(item))
  }
  return ends
}

export function waiting(event: object): Sendable {
  return { payload: JSON.stringify(event), isAcknowledged: false, isSentAgain: false }
}

function permutations(values: number[]): number[][] {
  if (values.length < 2) return [values]
  return values.flatMap((value, index) =>
    permutations(values.toSpliced(index, 1)).map((rest) => [value, ...rest]),
  )
}
