import { ClassicLevel } from 'classic-level'

/**
 * Opens the least that can put messages on disk: messages that come during a write share the next synced batch.
 * `append` resolves when the batch is on disk, in the order of the calls. It calls `underway` when the write has begun.
 * Without a message, the call only takes its turn.
 */
export async function openSyncedLog(directory: string) {
  const db = new ClassicLevel<string, Buffer>(directory, { valueEncoding: 'buffer' })
  await db.open()
  let waiting: { message: Buffer | undefined; underway: () => void; resolve: () => void }[] = []
  let position = 0
  let isWriting = false

  return {
    append(message: Buffer | undefined, underway = () => {}): Promise<void> {
      return new Promise((resolve) => {
        waiting.push({ message, underway, resolve })
        if (!isWriting) void writeWaiting()
      })
    },
  }

  async function writeWaiting(): Promise<void> {
    isWriting = true
    // Messages that were read together share the first batch.
    await undefined
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      const batch = db.batch()
      for (const { message } of group) {
        if (message) batch.put(String(++position).padStart(16, '0'), message)
      }
      const written = batch.write({ sync: true })
      for (const { underway } of group) underway()
      await written
      for (const { resolve } of group) resolve()
    }
    isWriting = false
  }
}
