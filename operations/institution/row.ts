import { type ChangeRequest, type Operation, rowOf } from '../operation.ts'
import type { Own } from './own.ts'

/** What a user of an institution needs for a command. */
export type OwnPermission = 'publish' | 'subscribe'

/** Where the HTTPS API has a command: `GET /institution/livestreams/{id}`. Arguments in braces stand in the path. */
export type InstitutionRoute = `${'GET' | 'POST'} /institution/${string}`

interface Asked {
  permission: OwnPermission
  at: InstitutionRoute
}

/** A command with which users see or change what belongs to their institution. */
export type OwnOperation = Operation<Own> & Asked

/** A command that only reads. */
export const shows = rowOf<Own, 'none', [], Asked>('none')
/** A command that changes something. */
export const alters = rowOf<Own, 'change', [change: ChangeRequest], Asked>('change')
/** A command that removes something for good. */
export const ends = rowOf<Own, 'loss', [change: ChangeRequest], Asked>('loss')
