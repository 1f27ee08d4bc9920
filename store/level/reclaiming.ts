/** After this many removed keys, their disk space is reclaimed. */
const enough = 200_000
/** While more bytes per second than this are written, no space is reclaimed. */
const calmBytesPerSecond = 4_000_000
/** How often the rate of writing is measured, milliseconds. */
const intervalMs = 2_000
/** Sorts after every key of the store. */
const highestKey = '\u{10ffff}'

/** Removed keys, and bytes of stored values, since the last look. */
export interface Written {
  removed: number
  bytes: number
}

/** The part of LevelDB that reclaiming uses. */
interface Compactable {
  compactRange(start: string, end: string): Promise<void>
}

/**
 * Frees the disk space of removed keys. LevelDB alone would keep this space for days: docs/decisions, "The space of
 * removed entries is asked for". Waits while much is being written. LevelDB could not finish a compaction during that
 * time. `now` returns milliseconds.
 */
export function startReclaiming(db: Compactable, now: () => number = () => performance.now()) {
  const written: Written = { removed: 0, bytes: 0 }
  let removed = 0
  let since = now()
  let isRunning = false
  const timer = setInterval(look, intervalMs).unref()

  return {
    /** The caller adds to these numbers what it writes. */
    written,
    look,
    stop: (): void => clearInterval(timer),
  }

  function look(): void {
    const isCalm = (written.bytes * 1000) / (now() - since) <= calmBytesPerSecond
    since = now()
    removed += written.removed
    written.removed = 0
    written.bytes = 0
    if (isCalm && removed >= enough && !isRunning) void reclaim()
  }

  async function reclaim(): Promise<void> {
    const given = removed
    isRunning = true
    removed = 0
    try {
      // Closing the database waits for this compaction.
      await db.compactRange('', highestKey)
    } catch {
      // A failure costs only disk space. A later look tries again.
      removed += given
    } finally {
      isRunning = false
    }
  }
}
