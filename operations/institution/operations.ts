import type { Of } from '../operation.ts'
import { ownContact } from './contact.ts'
import { ownCredentials } from './credentials.ts'
import { ownLivestreams } from './livestreams.ts'
import { ownRefusals } from './refusals.ts'
import { ownReport } from './report.ts'
import type { OwnOperation } from './row.ts'
import { ownSubscriptions } from './subscriptions.ts'

export type OwnOperationName = keyof typeof ownOperations

/** The answer of a command of institutions. */
export type OwnResult<Name extends OwnOperationName> = Of<(typeof ownOperations)[Name]['result']>

/**
 * All commands of users of institutions (open.md §7): each is a route of the HTTPS API below `/institution`, and a view or
 * a button of the console. Their rows get `Own`, which is limited to the institution of the user.
 */
export const ownOperations = {
  ...ownLivestreams,
  ...ownRefusals,
  ...ownReport,
  ...ownCredentials,
  ...ownContact,
  ...ownSubscriptions,
} satisfies Record<string, OwnOperation>

export const ownOperationNames = Object.keys(ownOperations) as OwnOperationName[]
