import { createNewestMap } from './newest-map.ts'

/** So many records stay until they are deleted. */
const mostThatStay = 60_000

export type Records<Of> = ReturnType<typeof createRecords<Of>>

/**
 * One record for each livestream. Loops, silence and counts keep what they know in the same record, so that an event
 * looks into one map only: the first look into a map is what costs. `empty` makes a record.
 */
export function createRecords<Of>(empty: () => Of) {
  const staying = new Map<string, Of>()
  /** Records for which there was no room. */
  const others = createNewestMap<Of>(mostThatStay)
  /** The record that was looked for last, if it stays. */
  let lastId = ''
  let last: Of | undefined

  return {
    /** The record of a livestream, if there is one. */
    get: (livestreamId: string): Of | undefined => staysOf(livestreamId) ?? others.get(livestreamId),

    /** The record of a livestream that stays until it is deleted. Undefined: there is no room for more. */
    stay,

    /** The record of a livestream. Of those that find no room, the newest stay. */
    of(livestreamId: string): Of {
      const known = stay(livestreamId)
      if (known !== undefined) return known
      const other = others.get(livestreamId) ?? empty()
      others.set(livestreamId, other)
      return other
    },

    delete(livestreamId: string): void {
      staying.delete(livestreamId)
      others.delete(livestreamId)
      if (livestreamId === lastId) last = undefined
    },

    /** How many records stay. */
    count: (): number => staying.size,
    *all(): Generator<[livestreamId: string, Of]> {
      yield* staying
      yield* others.entries()
    },
  }

  function stay(livestreamId: string): Of | undefined {
    const known = staysOf(livestreamId)
    if (known !== undefined || staying.size >= mostThatStay) return known
    last = others.get(livestreamId) ?? empty()
    others.delete(livestreamId)
    staying.set(livestreamId, last)
    return last
  }

  function staysOf(livestreamId: string): Of | undefined {
    if (livestreamId !== lastId) {
      lastId = livestreamId
      last = staying.get(livestreamId)
    }
    return last
  }
}
