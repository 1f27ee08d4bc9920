/** After this many removed keys, their disk space is reclaimed. */
const enough = 200_000
/** While more bytes per second than this are written, LevelDB is busy with new data, and no space is reclaimed. */
const calmBytesPerSecond = 4_000_000
/** Shortest time over which the rate of writing is measured, milliseconds. */
const lookMs = 2_000
/** Sorts after every key of the store. */
const highestKey = '\u{10ffff}'

/** How much a batch has written: the number of keys that it removed, and the bytes of the values that it stored. */
export interface Written {
  removed: number
  bytes: number
}

/** The part of LevelDB that reclaiming uses. */
interface Compactable {
  compactRange(start: string, end: string): Promise<void>
}

/**
 * Frees the disk space of removed keys, by a compaction of LevelDB's tables. LevelDB itself compacts tables only where
 * its levels grow, which is at the end of the journal (the keys below `journal/`). The journal loses entries at its
 * beginning, and without this compaction they would stay on the disk for days. Reclaiming waits while much is written:
 * as long as new tables appear during a compaction, LevelDB does not end it. `now` returns milliseconds.
 */
export function createReclaiming(db: Compactable, now: () => number = () => performance.now()) {
  let removed = 0
  let bytes = 0
  let since = now()
  let isRunning = false

  /** Call this after each written batch. */
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
