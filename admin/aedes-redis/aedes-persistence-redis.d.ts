/** The package has no types of its own. These are the types of the functions that the import from Aedes calls. */
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

  /**
   * `options` is one of two things:
   * - an object with `conn`, a connection that works like one of ioredis
   * - the options with which ioredis connects
   */
  export default function open(options: object): Persistence
}
