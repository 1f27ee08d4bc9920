import { IncomingMessage } from 'node:http'
import type { Route } from './routes/route.ts'

/** Where MQTT over WebSocket is served (design.md §3). */
export const websocketPath = '/mqtt'

/**
 * A request. Node asks `upgrade` whether the connection leaves HTTP with it: for MQTT, and for a stream, which would else
 * keep all that Node has for the next request. Whatever else a client offers by the header Upgrade, such as `h2c` or
 * `TLS/1.2`, is ignored, and the request is answered like any other (RFC 9110 §7.8). Node sets `upgrade` before it knows
 * the method and the headers.
 */
export class HubRequest extends IncomingMessage {
  isUpgradeOffered?: boolean

  /** Whether the answer lasts as long as the connection: nothing behind the request is read as HTTP. */
  get isLast(): boolean {
    return false
  }

  get upgrade(): boolean {
    if (this.isLast) {
      left.add(this.socket)
      return true
    }
    return this.isUpgradeOffered === true && (this.method === 'CONNECT' || isForMqtt(this))
  }

  set upgrade(value: unknown) {
    this.isUpgradeOffered = value === true
  }
}

/** The connections on which a last request was read. */
const left = new WeakSet<object>()

/** Whether a last request was read on a connection. From Node 26 on, requests may be read behind it. */
export function hasLeft(socket: object): boolean {
  return left.has(socket)
}

function isForMqtt({ method, url = '', headers, httpVersion }: IncomingMessage): boolean {
  const offered = headers.upgrade?.toLowerCase().split(',') ?? []
  const isWebSocket = offered.some((protocol) => protocol.trim() === 'websocket')
  return isWebSocket && method === 'GET' && httpVersion === '1.1' && url.split('?')[0] === websocketPath
}

/** Whether the header Host is there more than once: a proxy might have read another one (RFC 9112 §3.2). */
export function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === 'host').length > 1
}

/** The class of requests for these routes: a request for a stream is the last one of its connection. */
export function requestClass(routes: readonly Route[]): typeof HubRequest {
  const streams = routes
    .filter(({ isStream }) => isStream)
    .map(({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]*')}$`))
  return class extends HubRequest {
    override get isLast(): boolean {
      if (this.method !== 'GET') return false
      const path = pathOf(this.url ?? '')
      return streams.some((each) => each.test(path))
    }
  }
}

/** The path as routes are compared with it. One that cannot be decoded names no route. */
function pathOf(url: string): string {
  try {
    return decodeURI(url.replace(/[?#].*/s, ''))
  } catch {
    return ''
  }
}
