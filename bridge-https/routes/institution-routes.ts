import type { TObject, TSchema } from 'typebox'
import { isRecord } from '../../event/json.ts'
import { Type } from '../../event/type.ts'
import { refuse } from '../answer.ts'
import { compileParameters } from '../body.ts'
import type { KnownUser } from '../users/users.ts'
import { commandAnswer, type Performed } from './command-answer.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import type { GuardedRoute, QueryParameter } from './route.ts'

/** The commands of institutions. */
interface InstitutionParts {
  ownOperations: Readonly<Record<string, OwnCommand>>
  /** Carries out a command, limited to the institution of the user. */
  performOwn(
    name: string,
    args: Record<string, unknown>,
    user: KnownUser,
    isStillAllowed: () => Promise<boolean>,
  ): Promise<Performed>
}

/** A row of the table of commands. `at`: method and path, with arguments in braces. */
interface OwnCommand {
  permission: 'publish' | 'subscribe'
  at: string
  summary: string
  effect: string
  args: TObject
  result: TSchema
  resultExample: unknown
}

/** Largest body in bytes: that of the dry run holds an event. */
const maxBytes = 1024 * 1024

/** Routes to what an institution sees and changes of its own (open.md §7): one for each command of institutions. */
export function institutionRoutes({
  ownOperations,
  performOwn,
  rate,
}: InstitutionParts & { rate: EventRate }): GuardedRoute[] {
  const oneAtATime = createOneAtATime(rate)
  return Object.entries(ownOperations).map(([name, command]) => {
    const { permission, at, summary, effect, args, result, resultExample } = command
    const [method = '', path = ''] = at.split(' ')
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => parameter)
    const { placed, others } = dividedBy(inPath, args)
    const isRead = method === 'GET'
    const check = compileParameters(args)
    return {
      method: isRead ? 'GET' : 'POST',
      path,
      id: `institution.${name}`,
      summary,
      tag: 'Institution',
      effect,
      permission,
      ...(inPath.length > 0 && { params: placed }),
      ...(isRead ? { query: queryOf(others) } : { body: [others], mayLackBody: true, bodyBytes: maxBytes }),
      answers: {
        200: { description: 'Done', schema: { ...result, examples: [resultExample] } as TSchema },
        ...(isRead && { 400: 'Invalid parameter' }),
        404: 'The institution has no such thing',
        409: 'The node will not do it: `message` says why',
        429: tooManyQuestions,
      },
      async handle(call, user) {
        const given = isRead ? numbersIn(call.query, others) : isRecord(call.body) ? call.body : {}
        const asked = { ...given, ...call.params }
        const wrong = check(asked)
        if (wrong.length > 0) {
          const place = (at: string) => (inPath.includes(at.slice(1)) ? 'params' : isRead ? 'query' : 'body')
          return refuse(
            400,
            wrong.map((error) => ({ ...error, path: `.${place(error.path)}${error.path}` })),
          )
        }
        return oneAtATime(call, { userId: user.userId, about: name }, async () => {
          const performed = await performOwn(name, asked, user, call.isStillUser)
          return commandAnswer(performed, {
            effect,
            isStillUser: call.isStillUser,
            bodyOf: (result) => result,
            statusOf: ({ isUnknown }) => (isUnknown ? 404 : 409),
          })
        })
      },
    }
  })
}

/** The arguments in the path, as parameters, and a schema of the others. */
function dividedBy(inPath: readonly string[], { properties, examples }: TObject & { examples?: unknown }) {
  const [example] = Array.isArray(examples) ? examples : []
  const isOther = ([name]: readonly [string, unknown]) => !inPath.includes(name)
  const others = Object.entries(properties).filter(isOther)
  return {
    placed: Object.fromEntries(
      inPath.map((name) => [name, { description: descriptionOf(properties[name]) }]),
    ),
    others: Type.Object(Object.fromEntries(others), {
      additionalProperties: false,
      examples: [Object.fromEntries(Object.entries(Object(example)).filter(isOther))],
    }),
  }
}

/** The parameters of the query for the arguments of a command that only reads. */
function queryOf({ properties }: TObject): Record<string, QueryParameter> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]): [string, QueryParameter] => {
      const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER, enum: values } = Object(schema)
      const description = descriptionOf(schema)
      if (isInteger(schema)) return [name, { description, minimum, maximum }]
      return [
        name,
        Array.isArray(values) ? { description, enum: values.map(String) } : { description, isList: false },
      ]
    }),
  )
}

/** Turns the texts of a query into numbers where the schema has them. */
function numbersIn(
  query: Readonly<Record<string, unknown>>,
  { properties }: TObject,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const isNumber =
        isInteger(properties[name]) && typeof value === 'string' && /^-?[0-9]{1,15}$/.test(value)
      return [name, isNumber ? Number(value) : value]
    }),
  )
}

function isInteger(schema: unknown): boolean {
  return Object(schema).type === 'integer'
}

function descriptionOf(schema: unknown): string {
  return String(Object(schema).description ?? '')
}
