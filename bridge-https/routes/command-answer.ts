import { jsonInTurns } from '../../telemetry/turns.ts'
import { type Answer, httpsError, jsonText, refuse } from '../answer.ts'

/** What became of a command. `isUnknown`: what it names does not exist. */
export type Performed = { result: unknown } | { error: { code: string; message: string; isUnknown?: true } }

/**
 * The answer to a user who had a command carried out, and its length in bytes. `bodyOf` makes the body of the result,
 * `statusOf` the status of a refusal.
 */
export async function commandAnswer(
  performed: Performed,
  about: {
    effect: string
    isStillUser: () => Promise<boolean>
    bodyOf: (result: unknown) => unknown
    statusOf: (error: { isUnknown?: true }) => 404 | 409
  },
): Promise<{ answer: Answer; bytes: number }> {
  const { effect, isStillUser, bodyOf, statusOf } = about
  const isChanged = effect !== 'none' && 'result' in performed
  // A user that was removed during the command gets 403. But after a successful change, the user always gets the answer
  // of the command: the change may have removed this very user.
  const isForUser = isChanged || (await isStillUser())
  const answer = isForUser ? await told() : refuse(403, [httpsError('authorization.invalid')])
  return { answer, bytes: String(answer.body).length }

  async function told(): Promise<Answer> {
    if ('result' in performed) {
      return jsonText(await jsonInTurns(bodyOf(performed.result)))
    }
    const { code, message } = performed.error
    return refuse(code === 'refused' ? statusOf(performed.error) : 500, undefined, message)
  }
}
