import { fetchHttp } from './http.ts'
import {
  createPublisherOverHttps,
  type HttpsPublisher,
  type HttpsPublisherOptions,
} from './https-publisher.ts'
import { unsupported } from './options.ts'
import { createPublisher, type Publisher, type PublisherOptions } from './publisher.ts'
import { messageOf } from './reason.ts'

/**
 * Connects a publisher. It connects, and connects again, by itself; events wait until it has. Throws `ClientError` for a
 * wrong option, and for `outbox` and `ca`, which need files.
 */
export function connectPublisher(options: PublisherOptions): Publisher {
  return createPublisher(options, {
    hash: createHash(),
    reasonOf: messageOf,
    readCa: () => unsupported('ca'),
    openOutbox: () => unsupported('outbox'),
    createWorth: () => unsupported('outbox'),
  })
}

/**
 * Makes a publisher over HTTPS, for pages of the hub's own origin. Throws `ClientError` for a wrong option, and for `ca`,
 * which needs files.
 */
export function createHttpsPublisher(options: HttpsPublisherOptions): HttpsPublisher {
  if (options.ca !== undefined) unsupported('ca')
  return createPublisherOverHttps(options, fetchHttp)
}

function createHash(): (text: string) => Promise<string> {
  let last: Promise<unknown> = Promise.resolve()
  return (text) => {
    const digest = crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
    // Digests may end in another order than they began. Events must not.
    const result = last.then(async () => toHex(await digest))
    last = result
    return result
  }
}

const toHex = (digest: ArrayBuffer) =>
  [...new Uint8Array(digest, 0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
