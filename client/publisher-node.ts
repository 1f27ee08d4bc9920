import { hash } from 'node:crypto'
import { openOutbox } from './outbox.ts'
import { createPublisher, type Publisher, type PublisherOptions } from './publisher.ts'
import { readCa } from './read-ca.ts'

/**
 * Connects a publisher. It connects, and connects again, by itself; events wait until it has. Throws `ClientError` for a
 * wrong option or an outbox that it cannot use.
 */
export function connectPublisher(options: PublisherOptions): Publisher {
  return createPublisher(options, { hash: hashOf, readCa, openOutbox })
}

const hashOf = (text: string) => hash('sha256', text, 'hex').slice(0, 16)
