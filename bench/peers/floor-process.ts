import { parseJson } from '../../event/json.ts'
import { checkShape } from '../../event/shape.ts'
import { answer } from '../answer.ts'
import { completed, type LightStart, startLightServer } from './light-server.ts'
import { openSyncedLog } from './synced-log.ts'

/*
 * The least that a hub must do with an event: read it, check its shape as the hub does, put it on disk and send it on.
 * Like the hub, the floor sends to clean sessions while the disk is busy. PUBACK comes after the disk.
 */

export const commands = {
  async start({ directory, ...of }: LightStart & { directory: string }): Promise<number> {
    const log = await openSyncedLog(directory)
    const server = await startLightServer(of, 1, (payload, acknowledge) => {
      const message = isEvent(payload) ? completed(payload) : undefined
      // A refused event only takes its turn: acknowledgements keep the order [MQTT-4.6.0-2].
      void log.append(message, () => message && server.send(message)).then(acknowledge)
    })
    return server.port
  },
}

answer(commands)

function isEvent(payload: Buffer): boolean {
  const parsed = parseJson(payload)
  return 'value' in parsed && !('errors' in checkShape(parsed.value, { protocol: 'mqtt', now: Date.now() }))
}
