import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ClientError } from './errors.ts'
import { openOutbox } from './outbox.ts'
import { createPublisher, type Publisher, type PublisherOptions } from './publisher.ts'

/**
 * Connects a publisher. It connects, and connects again, by itself; events wait until it has. Throws `ClientError` for a
 * wrong option or an outbox that it cannot use.
 */
export function connectPublisher(options: PublisherOptions): Publisher {
  return createPublisher(options, { hash: hashOf, readCa, openOutbox })
}

const hashOf = (text: string) => hash('sha256', text, 'hex').slice(0, 16)

function readCa(ca: string): string {
  if (ca.includes('-----BEGIN')) return ca
  try {
    return readFileSync(ca, 'utf8')
  } catch (error) {
    throw new ClientError('option.invalid', `ca must be PEM text or the path of a PEM file: ${ca}`, {
      cause: error,
    })
  }
}
