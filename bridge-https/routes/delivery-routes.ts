import type { Deliveries } from '../../delivery/deliveries.ts'
import type { PushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { Type } from '../../event/type.ts'
import { refuseUntil } from '../answer.ts'
import { TestAnswer } from '../description/schemas.ts'
import type { GuardedRoute } from './route.ts'
import { noSubscription, noSuchSubscription, params } from './subscription-routes.ts'

/** The parts of the hub that these routes ask. */
interface DeliveryParts {
  subscriptions: Pick<PushSubscriptions, 'get'>
  deliveries: Pick<Deliveries, 'attempts' | 'test'>
}

/** Routes that show the pushes of a subscription to the people who run its receiver. */
export function deliveryRoutes({ subscriptions, deliveries }: DeliveryParts): GuardedRoute[] {
  const base = { tag: 'Subscriptions', track: 'push', permission: 'subscribe' } as const
  return [
    {
      ...base,
      method: 'GET',
      path: '/subscriptions/{name}/deliveries',
      id: 'listDeliveries',
      summary: 'List the last deliveries, newest first',
      params,
      answers: {
        200: {
          description: 'The last 50 tries, acknowledged or not',
          schema: Type.Array(Type.Unsafe({ $ref: 'Delivery' })),
        },
        404: noSuchSubscription,
      },
      async handle(call, { institutionId }) {
        const found = subscriptions.get(institutionId, call.params.name ?? '')
        if (!found) return noSubscription
        return { status: 200, body: await deliveries.attempts(found.name) }
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/subscriptions/{name}/test',
      id: 'testSubscription',
      summary: 'Send a test message to the webhook now',
      description:
        'The message is marked: its event is `de.org.hub.v1.test`, and its attributes have `test`. The answer says what the webhook answered. A subscription that was disabled because its webhook answered 410 is enabled again when the test is acknowledged, and gets what waits for it. One that the operator has paused stays so.',
      params,
      answers: {
        200: { description: 'It was sent; see `delivered`', schema: TestAnswer },
        404: noSuchSubscription,
        429: 'This webhook, or too many others, are being tested already; the header Retry-After says when to ask again',
      },
      async handle(call, { institutionId }) {
        const found = subscriptions.get(institutionId, call.params.name ?? '')
        if (!found) return noSubscription
        const delivery = await deliveries.test(found.name)
        if (!delivery) return refuseUntil(429, 1)
        return { status: 200, body: { delivered: delivery.reason === null, delivery, trace: null } }
      },
    },
  ]
}
