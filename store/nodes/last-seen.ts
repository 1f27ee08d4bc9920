import { createCollection } from '../collection.ts'
import type { Family } from '../keys.ts'
import type { Store } from '../store.ts'

/** Milliseconds between two writes. A crash loses the notes since the last write. */
const flushMs = 10_000
/** Maximum number of notes in one commit. Few commits let a node with thousands of notes stop in time. */
const perCommit = 500

/** A note about one thing. `lastAt`: when the thing was last seen, ISO 8601. */
interface Seen {
  lastAt: string
}

/**
 * Notes when things (credentials, for example) were last seen, for all nodes and across restarts. Writes each key at
 * most once in ten seconds.
 */
export async function createLastSeen<T extends Seen>(parts: {
  store: Store
  family: Pick<Family, 'prefix'>
  /** A starting node deletes the notes from before this time, ISO 8601. */
  since: string
  onStoreFailure: (error: unknown) => void
}) {
  const { store, family, since, onStoreFailure } = parts
  const stored = await createCollection<T>(store, family)
  for (const [key, { lastAt }] of [...stored.entries()]) {
    if (lastAt < since) await stored.delete(key)
  }
  /** Notes that are not written yet. Undefined: the thing is gone, and its note will be deleted. */
  const unwritten = new Map<string, T | undefined>()
  let flushing: Promise<void> = Promise.resolve()
  const timer = setInterval(() => void flush(), flushMs).unref()

  return {
    note: (key: string, seen: T): void => void unwritten.set(key, seen),

    /** Deletes the note about a thing that is gone. */
    forget: (key: string): void => void unwritten.set(key, undefined),

    /** Deletes the notes about things that are gone. */
    keep(isThere: (key: string) => boolean): void {
      for (const [key] of stored.entries()) if (!isThere(key)) unwritten.set(key, undefined)
    },

    get: (key: string): T | undefined => (unwritten.has(key) ? unwritten.get(key) : stored.get(key)),

    all: (): T[] =>
      [...new Map([...stored.entries(), ...unwritten]).values()].filter((seen) => seen !== undefined),

    /** Writes the notes that are not written yet. */
    async close(): Promise<void> {
      clearInterval(timer)
      await flush()
    },
  }

  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      const all = [...unwritten]
      for (let start = 0; start < all.length; start += perCommit) {
        await write(all.slice(start, start + perCommit))
      }
    })
    return flushing
  }

  async function write(notes: readonly [key: string, seen: T | undefined][]): Promise<void> {
    for (const [key] of notes) unwritten.delete(key)
    // Skips a note if another node has stored a later time, or has deleted the note.
    const newer = notes.filter(([key, seen]) => {
      const known = stored.get(key)
      return seen ? seen.lastAt >= (known?.lastAt ?? '') : known !== undefined
    })
    await stored.change(newer).catch((error: unknown) => {
      for (const [key, seen] of newer) if (!unwritten.has(key)) unwritten.set(key, seen)
      onStoreFailure(error)
    })
  }
}
