import { addressOf } from './address.ts'
import { httpTrusting } from './http-node.ts'
import { readCa } from './read-ca.ts'
import { reasonOf } from './reason.ts'
import { createSubscriber, type Subscriber, type SubscriberOptions } from './subscriber.ts'

/**
 * Subscribes, and goes on by itself after lost connections. Throws `ClientError` (`option.invalid`) for a wrong option;
 * all else is told by `onProblem`.
 */
export function connectSubscriber(options: SubscriberOptions): Subscriber {
  return createSubscriber(options, { readCa, httpTrusting, reasonOf, addressOf })
}
