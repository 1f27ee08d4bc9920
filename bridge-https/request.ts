import { IncomingMessage } from 'node:http'

/** Where MQTT over WebSocket is served (design.md §3). */
export const websocketPath = '/mqtt'

/**
 * A request. Node asks `upgrade` whether the connection leaves HTTP with it. Whatever else a client offers by the header
 * Upgrade, such as `h2c` or `TLS/1.2`, is ignored, and the request is answered like any other (RFC 9110 §7.8). Node sets
 * `upgrade` before it knows the method and the headers.
 */
export class HubRequest extends IncomingMessage {
  isUpgradeOffered?: boolean

  get upgrade(): boolean {
    return this.isUpgradeOffered === true && (this.method === 'CONNECT' || isForMqtt(this))
  }

  set upgrade(value: unknown) {
    this.isUpgradeOffered = value === true
  }
}

function isForMqtt({ method, url = '', headers, httpVersion }: IncomingMessage): boolean {
  const offered = headers.upgrade?.toLowerCase().split(',') ?? []
  const isWebSocket = offered.some((protocol) => protocol.trim() === 'websocket')
  return isWebSocket && method === 'GET' && httpVersion === '1.1' && url.split('?')[0] === websocketPath
}
