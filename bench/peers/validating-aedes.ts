import type { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:tls'
import { Aedes, type AedesOptions } from 'aedes'
import { listen } from '../listen.ts'
import { createValidation } from './validation.ts'

/** Start parameters of a process that runs Aedes. */
export interface AedesStart {
  cert: string
  key: string
  feedPath: string
}

/**
 * Starts Aedes as documented, with the validation in `authorizePublish`. An event is acknowledged after its message is
 * published in the radio tree. Returns the port.
 */
export async function startValidatingAedes(
  { cert, key, feedPath }: AedesStart,
  options: AedesOptions = {},
): Promise<number> {
  const validate = createValidation(
    feedPath,
    ({ topic, payload, retained }) =>
      new Promise((resolve, reject) => {
        const packet = { topic, payload, qos: 1, retain: retained !== undefined } as const
        const done = (error?: Error | null) => (error ? reject(error) : resolve())
        aedes.publish({ cmd: 'publish', dup: false, ...packet }, done)
      }),
  )
  const { authorizePublish = (_client, _packet, done) => done(null), ...others } = options
  const aedes = await Aedes.createBroker({
    ...others,
    authorizePublish: (client, packet, done) => {
      const { topic, payload } = packet
      if (!client || !topic.startsWith('inbox/')) return authorizePublish(client, packet, done)
      validate(topic, Buffer.from(payload)).then(() => done(null), done)
    },
  })
  // Without a listener an error of the persistence would end the process.
  const emitter: EventEmitter = aedes
  emitter.on('error', () => {})
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
    socket.setNoDelay(true)
    aedes.handle(socket)
  })
  return listen(server)
}
