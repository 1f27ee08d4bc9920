import { noCa } from './no-ca.ts'
import { createSubscriber, type Subscriber, type SubscriberOptions } from './subscriber.ts'

/**
 * Subscribes, and goes on by itself after lost connections. Throws `ClientError` (`option.invalid`) for a wrong option,
 * and for `ca`, which browsers cannot take; all else is told by `onProblem`.
 */
export function connectSubscriber(options: SubscriberOptions): Subscriber {
  return createSubscriber(options, noCa)
}
