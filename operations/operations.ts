import type { Static } from 'typebox'
import { clientOperations } from './clients.ts'
import { credentialOperations } from './credentials.ts'
import { eventOperations } from './events.ts'
import { feedOperations } from './feed.ts'
import { httpsApiOperations } from './https-api.ts'
import { importOperations } from './imports.ts'
import type { Lines } from './lines.ts'
import { nodeOperations, storeOperations } from './node.ts'
import type { Of, Operation } from './operation.ts'
import { queueOperations } from './queues.ts'
import { userOperations } from './users.ts'

export type OperationName = keyof typeof operations

/** The arguments of a command, after the check. */
export type Args<Name extends OperationName> = Static<(typeof operations)[Name]['args']>

/** The answer of a command. */
export type Result<Name extends OperationName> = Of<(typeof operations)[Name]['result']>

/** The code of a command. A command that may answer line by line returns the lines. */
type Command<Name extends OperationName> = (
  args: Args<Name>,
  who: string,
) => Promise<Result<Name> | ('singleAnswerArgs' extends keyof (typeof operations)[Name] ? Lines : never)>

/** The code of all commands. */
export type OperationCommands = { [Name in OperationName]: Command<Name> }

/** The code of the commands whose names begin with this word. */
export type CommandsOf<Group extends string> = Pick<
  OperationCommands,
  Extract<OperationName, `${Group}.${string}`>
>

/**
 * All commands of operators (design.md §4), the same at all doors: admin socket, `POST /operate/{command}` and
 * `hubctl`. Argument checks, types of answers and the description of the HTTPS API come from this table.
 */
export const operations = {
  ...nodeOperations,
  ...credentialOperations,
  ...userOperations,
  ...feedOperations,
  ...clientOperations,
  ...queueOperations,
  ...eventOperations,
  ...importOperations,
  ...httpsApiOperations,
  ...storeOperations,
} satisfies Record<string, Operation>

export const operationNames = Object.keys(operations) as OperationName[]
