/** Removed keys whose space is given back together. */
const enough = 200_000
/** Above this rate LevelDB is busy with new data. */
const calmBytesPerSecond = 4_000_000
/** The pace of writing is looked at over this time, milliseconds. */
const lookMs = 2_000
/** No key of the store is as high. */
const highestKey = '\u{10ffff}'

/** What a batch has written: keys that were removed, and bytes of values. */
export interface Written {
  removed: number
  bytes: number
}

/** The part of LevelDB that it uses. */
interface Compactable {
  compactRange(start: string, end: string): Promise<void>
}

/**
 * Gives the space of removed keys back to the disk. LevelDB by itself compacts tables where its levels grow: at the end
 * of the journal. Entries that were removed from the beginning would stay on the disk for days.
 * It waits while much is written. LevelDB ends a compaction of a range only when no new tables come while it sorts the
 * last ones. `now` is in milliseconds.
 */
export function createReclaiming(db: Compactable, now: () => number = () => performance.now()) {
  let removed = 0
  let bytes = 0
  let since = now()
  let isRunning = false

  /** Is told of each batch that was written. */
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
      // Closing the database waits for it.
      await db.compactRange('', highestKey)
    } catch {
      // Only space depends on it. It is tried again after a later batch.
      removed += given
    } finally {
      isRunning = false
    }
  }
}
