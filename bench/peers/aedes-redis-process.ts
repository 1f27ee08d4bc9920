import type { EventEmitter } from 'node:events'
import type { AedesOptions, Client } from 'aedes'
import openPersistence from 'aedes-persistence-redis'
import { Redis } from 'ioredis'
import openEmitter from 'mqemitter-redis'
import { answer } from '../answer.ts'
import { type AedesStart, startValidatingAedes } from './validating-aedes.ts'

/*
 * Aedes that stores its data in Redis, and sends messages between brokers over Redis. Its documentation names this
 * set-up for several brokers.
 */

export const commands = {
  /** Starts a broker. `brokerId`: the name of a restarted broker; by default a new name. */
  start(start: AedesStart & { redisPort: number; brokerId?: string; heartbeatInterval?: number }) {
    const { redisPort, brokerId, heartbeatInterval, ...of } = start
    // Without the two `error` listeners, an error of Redis would end the process.
    const connect = () => new Redis(redisPort, '127.0.0.1').on('error', () => {})
    const mq = openEmitter({ subConn: connect(), pubConn: connect(), matchEmptyLevels: true })
    const { state } = mq as unknown as { state: EventEmitter }
    state.on('error', () => {})
    return startValidatingAedes(of, {
      ...(brokerId !== undefined && { id: brokerId }),
      ...(heartbeatInterval !== undefined && { heartbeatInterval }),
      ...permissions(),
      mq,
      persistence: openPersistence({ conn: connect() }),
    })
  },
}

answer(commands)

/** Users named `reader…` cannot publish, or subscribe beyond the radio tree. Others can do everything. */
function permissions(): AedesOptions {
  const readers = new WeakSet<Client>()
  return {
    authenticate(client, username, _password, done) {
      if (username?.startsWith('reader')) readers.add(client)
      done(null, true)
    },
    authorizeSubscribe(client, subscription, done) {
      const isDenied = readers.has(client) && !subscription.topic.startsWith('radio/')
      done(null, isDenied ? null : subscription)
    },
    authorizePublish(client, _packet, done) {
      done(client && readers.has(client) ? new Error('readers publish nothing') : null)
    },
  }
}
