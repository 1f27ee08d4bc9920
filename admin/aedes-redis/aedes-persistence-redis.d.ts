/** As far as it is used here: the package has no types. */
declare module 'aedes-persistence-redis' {
  import type { Readable } from 'node:stream'

  interface Persistence {
    /** The filters of a session. */
    subscriptionsByClient(client: { id: string }): Promise<unknown[]>
    /** The messages that wait for a session. */
    outgoingStream(client: { id: string }): Readable
    /** The retained messages of topics. */
    createRetainedStreamCombi(topics: readonly string[]): Readable
  }

  /** With `conn`, a connection to Redis as of ioredis, or with its options. */
  export default function open(options: object): Persistence
}
