/*
 * The parts of undici that the client for webhooks loads. Its main file would also load `fetch`, WebSocket and caches:
 * five times the CPU.
 */

declare module 'undici/lib/dispatcher/client.js' {
  export { Client as default } from 'undici'
}

declare module 'undici/lib/core/connect.js' {
  import type { TLSSocket } from 'node:tls'
  import type { buildConnector } from 'undici'

  /** Unlike in the types of the package, the function that connects returns the socket. */
  export default function build(
    options: buildConnector.BuildOptions,
  ): (...args: Parameters<buildConnector.connector>) => TLSSocket
}

declare module 'undici/lib/core/symbols.js' {
  const symbols: {
    /** Where a connected socket has its parser. */
    readonly kParser: unique symbol
  }
  export default symbols
}
