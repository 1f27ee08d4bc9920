import { banOperations } from './bans.ts'
import { clientOperations } from './clients.ts'
import { credentialOperations } from './credentials.ts'
import { checkOperation, eventOperations } from './events.ts'
import { explainOperation } from './explain.ts'
import { feedOperations } from './feed.ts'
import { httpsApiOperations } from './https-api.ts'
import { importOperations } from './imports.ts'
import { institutionOperations } from './institutions.ts'
import { nodeOperations, rareOperations } from './node.ts'
import type { Of, Operation } from './operation.ts'
import { outputOperations } from './outputs.ts'
import { queueOperations } from './queues.ts'
import { reportOperations } from './report.ts'
import { subscriptionOperations } from './subscriptions.ts'
import { userOperations } from './users.ts'

export type OperationName = keyof typeof operations

/** The answer of a command. */
export type Result<Name extends OperationName> = Of<(typeof operations)[Name]['result']>

/**
 * All commands of operators (design.md §4), the same at all doors: admin socket, `POST /operate/{command}` and
 * `hubctl`. Argument checks, types of answers and the description of the HTTPS API come from this table; `hubctl --help` has its
 * order.
 */
export const operations = {
  ...nodeOperations,
  ...credentialOperations,
  ...userOperations,
  ...institutionOperations,
  ...feedOperations,
  ...clientOperations,
  ...banOperations,
  ...checkOperation,
  ...explainOperation,
  ...queueOperations,
  ...subscriptionOperations,
  ...outputOperations,
  ...eventOperations,
  ...reportOperations,
  ...httpsApiOperations,
  ...importOperations,
  ...rareOperations,
} satisfies Record<string, Operation>

export const operationNames = Object.keys(operations) as OperationName[]
