/** A mark notes that the hub got an event, or that the hub did some work for the event. */
export interface Mark {
  /** Begins with the institution of the event: `{institution}/…`. */
  key: string
  /** When the hub got the event first, milliseconds since the epoch. */
  at: number
  id: string
}

/**
 * Keeps marks in memory, with a queue for each institution. If there are too many, the institution with the most marks
 * loses its oldest. So a publisher that sends many events does not make the hub forget the marks of other institutions.
 */
export function createMarks(parts: {
  /** Maximum number of marks in all. Above this number, the institution with the most marks loses its oldest. */
  limit: number
  /** Whether a mark is too old to count. */
  isOld: (mark: Mark) => boolean
  /** Whether a mark must not be removed now. */
  isBusy: (mark: Mark) => boolean
}) {
  const { limit, isOld, isBusy } = parts
  const seen = new Map<string, Mark>()
  /** Queues of marks by institution. The institution that has added no mark for the longest time comes first. */
  const lines = new Map<string, Line>()

  return {
    get: (key: string): Mark | undefined => seen.get(key),
    has: (mark: Mark): boolean => isCurrent(mark),

    add(mark: Mark): void {
      const institution = institutionOf(mark.key)
      const line = lines.get(institution) ?? createLine()
      lines.delete(institution)
      lines.set(institution, line)
      if (!seen.has(mark.key)) line.current++
      seen.set(mark.key, mark)
      firstOf(line)
      line.add(mark)
    },

    remove(key: string): void {
      if (!seen.delete(key)) return
      const institution = institutionOf(key)
      const line = lines.get(institution)
      if (line && --line.current === 0) lines.delete(institution)
    },

    /**
     * Returns at most `count` marks that the caller may remove, because they are old or too many. Marks of the
     * institution of `key` come first. No mark is returned twice. A returned mark stays until `remove` is called.
     */
    take(count: number, key: string): Mark[] {
      const taken: Mark[] = []
      const takeWhile = (line: Line | undefined, mayGo: (mark: Mark) => boolean) => {
        while (line && taken.length < count) {
          const mark = firstOf(line)
          if (!mark || isBusy(mark) || !mayGo(mark)) return
          line.drop()
          taken.push(mark)
        }
      }
      takeWhile(lines.get(institutionOf(key)), isOld)
      for (const line of lines.values()) {
        takeWhile(line, isOld)
        if (taken.length >= count || line.first()) break
      }
      if (seen.size >= limit) takeWhile(longest(), () => seen.size - taken.length >= limit)
      return taken
    },
  }

  /** The first current mark of a queue. Drops the marks before it, which have been replaced or removed. */
  function firstOf(line: Line): Mark | undefined {
    for (;;) {
      const mark = line.first()
      if (!mark || isCurrent(mark)) return mark
      line.drop()
    }
  }

  function longest(): Line | undefined {
    return [...lines.values()].reduce<Line | undefined>(
      (most, line) => (most && most.current >= line.current ? most : line),
      undefined,
    )
  }

  function isCurrent(mark: Mark): boolean {
    return seen.get(mark.key) === mark
  }
}

type Line = ReturnType<typeof createLine>

/** A queue of marks, oldest first. It is not a Map: to find its first entry, a Map steps over all deleted entries. */
function createLine() {
  let marks: Mark[] = []
  let first = 0
  return {
    /** Number of marks that have not been replaced or removed. */
    current: 0,
    add: (mark: Mark) => void marks.push(mark),
    first: (): Mark | undefined => marks[first],
    drop(): void {
      first++
      if (first < 1_024 || first * 2 < marks.length) return
      marks = marks.slice(first)
      first = 0
    },
  }
}

function institutionOf(key: string): string {
  const end = key.indexOf('/')
  return end < 0 ? key : key.slice(0, end)
}
