import { ClassicLevel } from 'classic-level'
import { parseJson } from '../../event/json.ts'
import { checkShape } from '../../event/shape.ts'
import { answer } from '../answer.ts'
import { completed, type LightStart, startLightServer } from './light-server.ts'

/*
 * The least that a hub must do with an event, in as little code as possible: read it, check it as the hub does, put it
 * on disk and send it on. Events that come during a write share the next synced batch. PUBACK follows the batch.
 */

interface Waiting {
  /** Undefined: the event was refused, and only its PUBACK waits for its turn. */
  message: Buffer | undefined
  acknowledge: () => void
}

export const commands = {
  async start({ directory, ...of }: LightStart & { directory: string }): Promise<number> {
    const db = new ClassicLevel<string, Buffer>(directory, { valueEncoding: 'buffer' })
    await db.open()
    const waiting: Waiting[] = []
    let position = 0
    let isWriting = false
    const server = await startLightServer(of, 1, (payload, acknowledge) => {
      waiting.push({ message: isEvent(payload) ? completed(payload) : undefined, acknowledge })
      if (!isWriting) void writeWaiting()
    })
    return server.port

    async function writeWaiting(): Promise<void> {
      isWriting = true
      // Events that were read together share the first batch.
      await undefined
      while (waiting.length > 0) {
        const group = waiting.splice(0)
        const messages = group.flatMap(({ message }) => message ?? [])
        const batch = db.batch()
        for (const message of messages) batch.put(String(++position).padStart(16, '0'), message)
        const written = batch.write({ sync: true })
        // Like the hub, sends to clean sessions while the disk is busy.
        for (const message of messages) server.send(message)
        await written
        for (const { acknowledge } of group) acknowledge()
      }
      isWriting = false
    }
  },
}

answer(commands)

function isEvent(payload: Buffer): boolean {
  const parsed = parseJson(payload)
  return 'value' in parsed && !('errors' in checkShape(parsed.value, { protocol: 'mqtt', now: Date.now() }))
}
