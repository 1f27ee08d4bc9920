import { readFileSync } from 'node:fs'
import { createServer } from 'node:tls'
import { Aedes } from 'aedes'
import { answer } from '../answer.ts'
import { createValidation } from './validation.ts'

/* Aedes as its documentation starts it, in memory, with the validation in `authorizePublish`. */

export const commands = {
  async start({ cert, key, feedPath }: { cert: string; key: string; feedPath: string }): Promise<number> {
    const validate = createValidation(
      feedPath,
      ({ topic, payload, retained }) =>
        new Promise((resolve, reject) => {
          const packet = { topic, payload, qos: 1, retain: retained !== undefined } as const
          const done = (error?: Error | null) => (error ? reject(error) : resolve())
          aedes.publish({ cmd: 'publish', dup: false, ...packet }, done)
        }),
    )
    const aedes = await Aedes.createBroker({
      authorizePublish: (client, { topic, payload }, done) => {
        if (!client || !topic.startsWith('inbox/')) return done(null)
        validate(topic, Buffer.from(payload)).then(() => done(null), done)
      },
    })
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (socket) => {
      socket.setNoDelay(true)
      aedes.handle(socket)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  },
}

answer(commands)
