import { answer } from '../answer.ts'
import { completed, type LightStart, startLightServer } from './light-server.ts'

/* The fastest delivery that is possible on this platform. Publishers get PUBACK at once, and nothing is stored. */

let pubacks = () => 0

export const commands = {
  async start({ maxQos, ...of }: LightStart & { maxQos: 0 | 1 }): Promise<number> {
    const server = await startLightServer(of, maxQos, (payload, acknowledge) => {
      acknowledge()
      server.send(completed(payload))
    })
    pubacks = server.pubacks
    return server.port
  },

  /** How many PUBACKs of subscribers have been read. */
  pubacks: (_: object): number => pubacks(),
}

answer(commands)
