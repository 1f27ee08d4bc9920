import { costOf } from '../../listener/publish-rate.ts'
import { createLocks } from '../../store/lock.ts'
import { type Answer, httpsError, refuse, refuseUntil } from '../answer.ts'
import type { EventRate } from './event-routes.ts'
import type { Call } from './route.ts'

/** Describes the 429 with which the function of `createOneAtATime` refuses a request. */
export const tooManyQuestions = 'Too much at once; the header Retry-After says when to go on'

/**
 * Answers a user's requests one after the other. Requests use up the publish rate, so that readers cannot hold up
 * publishers. Requests of different kinds (`about`) do not wait for each other.
 */
export function createOneAtATime(rate: EventRate) {
  const questions = createLocks()

  return (
    { isStillUser }: Pick<Call, 'isStillUser'>,
    { userId, about = '' }: { userId: string; about?: string },
    ask: () => Promise<{ answer: Answer; bytes: number }>,
  ): Promise<Answer> =>
    questions.hold(`${userId} ${about}`, async () => {
      const waitMs = rate.take(userId, performance.now())
      if (waitMs > 0) return refuseUntil(429, Math.ceil(waitMs / 1000))
      // The request may have waited long for those before it.
      if (!(await isStillUser())) return refuse(403, [httpsError('authorization.invalid')])
      const { answer, bytes } = await ask()
      rate.charge(userId, costOf(bytes, 1) - 1, performance.now())
      return answer
    })
}
