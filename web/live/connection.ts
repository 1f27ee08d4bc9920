import { type ConnectionState, keepSubscribed } from '../../client/keep-subscribed.ts'
import { ask } from '../page/ask.ts'
import { now } from '../page/clock.ts'
import { forgetCredential, takeCredential } from './credential.ts'

export type { ConnectionState } from '../../client/keep-subscribed.ts'

const lost = 'The connection to the hub was lost.'
const noWebSocket =
  'The hub answers, but no WebSocket to it opens. A proxy in front of the hub must pass on the header Upgrade (docs/deployment.md, “Behind a proxy”).'

/**
 * Keeps an MQTT connection over WebSocket, across losses and new credentials. Each new connection brings the retained
 * messages. The state `refused`: the page must log in first, or may not read at all.
 */
export function connect(parts: {
  filters: readonly string[]
  received: (topic: string, payload: Uint8Array) => void
  changed: (state: ConnectionState, reason: string) => void
}) {
  const { filters, received, changed } = parts
  /** Whether a WebSocket has opened since the page was. */
  let hasOpened = false
  let isClosed = false
  let reasonOfLoss = lost
  const connection = keepSubscribed({
    url: `wss://${location.host}/mqtt`,
    options: { createWebsocket },
    clientId: () => `page-${crypto.randomUUID()}`,
    filters,
    logIn: takeCredential,
    loginRefused() {
      forgetCredential()
      return true
    },
    received,
    denied: () => {},
    changed(state, reason) {
      const isLine = state === 'lost' && reason === ''
      changed(state, isLine ? reasonOfLoss : reason)
      if (isLine && !hasOpened) void explain()
    },
    clock: now,
  })

  return {
    close(): void {
      isClosed = true
      void connection.close()
    },
  }

  function createWebsocket(url: string, protocols: string[]): WebSocket {
    const socket = new WebSocket(url, protocols)
    socket.addEventListener('open', () => {
      hasOpened = true
      reasonOfLoss = lost
    })
    return socket
  }

  /** A browser does not tell why no WebSocket opens. If `/mqtt` leads to the hub, then a proxy dropped the upgrade. */
  async function explain(): Promise<void> {
    const { status } = await ask('GET', '/mqtt')
    if (status !== 426 || hasOpened || isClosed) return
    reasonOfLoss = noWebSocket
    changed('lost', reasonOfLoss)
  }
}
