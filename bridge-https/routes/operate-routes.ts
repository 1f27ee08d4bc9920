import type { TSchema } from 'typebox'
import { isRecord } from '../../event/json.ts'
import { Type } from '../../event/type.ts'
import { jsonInTurns } from '../../telemetry/turns.ts'
import { type Answer, httpsError, jsonText, refuse } from '../answer.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import type { GuardedRoute } from './route.ts'

/** The commands of operators. */
export interface OperateParts {
  /** The table of commands. */
  operations: Readonly<
    Record<
      string,
      {
        summary: string
        effect: string
        args: TSchema
        result: TSchema
        resultExample: unknown
        singleAnswerArgs?: object | undefined
      }
    >
  >
  /**
   * Carries out a command. `who`: the user's name in the audit log. If the command changes something, `perform` asks
   * `isStillAllowed` just before the command begins.
   */
  perform(
    name: string,
    args: Record<string, unknown>,
    who: string,
    isStillAllowed?: () => Promise<boolean>,
  ): Promise<Performed>
}

type Performed = { result: unknown } | { error: { code: string; message: string } }

/** Largest body in bytes, as on the admin socket. The body of `check` holds an event. */
const maxBytes = 1024 * 1024

/** Routes for users with the permission `operate` (design.md §9): one for each command of `hubctl`. */
export function operateRoutes({
  operations,
  perform,
  rate,
}: OperateParts & { rate: EventRate }): GuardedRoute[] {
  const oneAtATime = createOneAtATime(rate)
  return Object.entries(operations).map(
    ([name, { summary, effect, args, result, resultExample, singleAnswerArgs }]) => ({
      method: 'POST',
      path: `/operate/${name}`,
      id: `operate.${name}`,
      summary: `${summary.charAt(0).toUpperCase()}${summary.slice(1)}`,
      tag: 'Operate',
      effect,
      permission: 'operate',
      body: [args],
      mayLackBody: true,
      bodyBytes: maxBytes,
      answers: {
        200: {
          description: 'Done; `result` is what `hubctl --json` prints of it, or more',
          schema: Type.Object({ result }, { examples: [{ result: resultExample }] }),
        },
        409: 'The node will not do it: `message` says why',
        429: tooManyQuestions,
      },
      handle: (call, { userId, email }) =>
        oneAtATime(call, { userId, about: name }, async () => {
          const given = isRecord(call.body) && call.body
          const performed = await perform(name, { ...singleAnswerArgs, ...given }, email, call.isStillUser)
          const isChanged = effect !== 'none' && 'result' in performed
          // A user that was removed during the command gets 403. But after a successful change, the user always gets the
          // answer of the command: the change may have removed this very user.
          const isForUser = isChanged || (await call.isStillUser())
          const answer = isForUser
            ? await answerOf(performed)
            : refuse(403, [httpsError('authorization.invalid')])
          return { answer, bytes: String(answer.body).length }
        }),
    }),
  )
}

async function answerOf(performed: Performed): Promise<Answer> {
  if ('result' in performed) {
    const { headers, ...answer } = jsonText(await jsonInTurns({ result: performed.result }))
    // The answer may hold a password or a link that is shown only once.
    return { ...answer, headers: { ...headers, 'cache-control': 'no-store' } }
  }
  const { code, message } = performed.error
  return refuse(code === 'refused' ? 409 : 500, undefined, message)
}
