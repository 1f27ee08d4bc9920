import { hash } from 'node:crypto'
import { addressOf } from './address.ts'
import { httpTrusting } from './http-node.ts'
import {
  createPublisherOverHttps,
  type HttpsPublisher,
  type HttpsPublisherOptions,
} from './https-publisher.ts'
import { openOutbox } from './outbox.ts'
import { createPublisher, type Publisher, type PublisherOptions } from './publisher.ts'
import { readAhead } from './read-ahead.ts'
import { readCa } from './read-ca.ts'
import { reasonOf } from './reason.ts'
import { createWorth } from './worth.ts'

/**
 * Connects a publisher. It connects, and connects again, by itself; events wait until it has. Throws `ClientError` for a
 * wrong option or an outbox that it cannot use.
 */
export function connectPublisher(options: PublisherOptions): Publisher {
  return createPublisher(options, {
    hash: hashOf,
    reasonOf,
    addressOf,
    readAhead,
    readCa,
    openOutbox,
    createWorth,
  })
}

const hashOf = (text: string) => hash('sha256', text, 'hex').slice(0, 16)

/** Makes a publisher over HTTPS, for those who cannot use MQTT. Throws `ClientError` for a wrong option. */
export function createHttpsPublisher(options: HttpsPublisherOptions): HttpsPublisher {
  const ca = options.ca === undefined ? undefined : readCa(options.ca)
  return createPublisherOverHttps(options, httpTrusting(ca))
}
