/** Number of removed keys at which their space is given back. */
const enough = 200_000
/** Above this rate of writing, LevelDB is busy with new data, and no space is given back. */
const calmBytesPerSecond = 4_000_000
/** Shortest time over which the rate of writing is measured, milliseconds. */
const lookMs = 2_000
/** Sorts after every key of the store. */
const highestKey = '\u{10ffff}'

/** What a batch has written: keys that were removed, and bytes of values. */
export interface Written {
  removed: number
  bytes: number
}

/** The part of LevelDB that reclaiming uses. */
interface Compactable {
  compactRange(start: string, end: string): Promise<void>
}

/**
 * Gives the space of removed keys back to the disk. LevelDB by itself compacts tables where its levels grow: at the
 * end of the journal. Entries removed from the beginning of the journal would stay on the disk for days.
 * Reclaiming waits while much is written, because LevelDB ends a compaction of a range only when no new tables come
 * while it sorts the last ones. `now` is in milliseconds.
 */
export function createReclaiming(db: Compactable, now: () => number = () => performance.now()) {
  let removed = 0
  let bytes = 0
  let since = now()
  let isRunning = false

  /** Call this with each batch that was written. */
  return (batch: Written): void => {
    removed += batch.removed
    bytes += batch.bytes
    const elapsed = now() - since
    if (elapsed < lookMs) return
    const isCalm = (bytes * 1000) / elapsed <= calmBytesPerSecond
    since = now()
    bytes = 0
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
      // A failure costs only disk space. A later batch tries again.
      removed += given
    } finally {
      isRunning = false
    }
  }
}
