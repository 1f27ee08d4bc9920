import type { TSchema } from 'typebox'
import { isRecord } from '../../event/json.ts'
import { Type } from '../../event/type.ts'
import { commandAnswer, type Performed } from './command-answer.ts'
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
      summary,
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
          return commandAnswer(performed, {
            effect,
            isStillUser: call.isStillUser,
            bodyOf: (result) => ({ result }),
            statusOf: () => 409,
          })
        }),
    }),
  )
}
