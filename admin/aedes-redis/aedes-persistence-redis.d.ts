/** Types of the functions that the import calls. The package itself has none. */
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

  /** `options` has `conn`, a connection like those of ioredis, or the options of ioredis. */
  export default function open(options: object): Persistence
}
