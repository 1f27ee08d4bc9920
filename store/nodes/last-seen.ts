import { createCollection } from '../collection.ts'
import type { Store } from '../store.ts'

/** Milliseconds between two writes. A crash loses at most the notes of this time. */
const flushMs = 10_000

/** When something was seen last, ISO 8601. */
interface Seen {
  lastAt: string
}

/**
 * Notes when each of many things was seen last. All nodes know the notes, and restarts keep them. A note costs no write
 * of its own: all are written together, every ten seconds.
 */
export async function createLastSeen<T extends Seen>(parts: {
  store: Store
  name: string
  /** Older notes are forgotten when a node starts. */
  since: string
  onStoreFailure: (error: unknown) => void
}) {
  const { store, name, since, onStoreFailure } = parts
  const stored = await createCollection<T>(store, name)
  for (const [key, { lastAt }] of [...stored.entries()]) {
    if (lastAt < since) await stored.delete(key)
  }
  /** Notes that are not written yet. */
  const own = new Map<string, T>()
  let flushing: Promise<void> = Promise.resolve()
  const timer = setInterval(() => void flush(), flushMs).unref()

  return {
    note: (key: string, seen: T): void => void own.set(key, seen),

    get: (key: string): T | undefined => own.get(key) ?? stored.get(key),

    all: (): T[] => [...new Map([...stored.entries(), ...own]).values()],

    /** Writes the notes that are not written yet. */
    async close(): Promise<void> {
      clearInterval(timer)
      await flush()
    },
  }

  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      for (const [key, seen] of [...own]) {
        own.delete(key)
        // Another node may know a later time.
        if (seen.lastAt < (stored.get(key)?.lastAt ?? '')) continue
        await stored.put(key, seen).catch((error: unknown) => {
          if (!own.has(key)) own.set(key, seen)
          onStoreFailure(error)
        })
      }
    })
    return flushing
  }
}
