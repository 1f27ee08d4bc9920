import { Socket } from 'node:net'
import { connectAsync } from 'mqtt'
import { answer } from '../answer.ts'
import { createValidation } from './validation.ts'

/* A client that validates for a broker, between the inbox and the radio tree. */

export const commands = {
  /** Without a `ca`, the client uses no TLS. */
  async start({ port, ca, feedPath }: { port: number; ca?: string; feedPath: string }): Promise<void> {
    const address = { protocol: ca === undefined ? 'mqtt' : 'mqtts', host: 'localhost', port } as const
    const options = { clientId: 'validator', reconnectPeriod: 0, ...(ca !== undefined && { ca }) }
    const client = await connectAsync({ ...address, ...options })
    if (client.stream instanceof Socket) client.stream.setNoDelay(true)
    const validate = createValidation(feedPath, async ({ topic, payload, retained }) => {
      // The connection keeps the order without waiting for the PUBACK.
      client.publish(topic, payload, { qos: 1, retain: retained !== undefined })
    })
    client.on('message', (topic, payload) => void validate(topic, payload))
    await client.subscribeAsync('inbox/#', { qos: 1 })
  },
}

answer(commands)
