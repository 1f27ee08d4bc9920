import type { Log } from '../../telemetry/log.ts'
import type { NodeParts } from '../node-parts.ts'
import { commandOf, type Performed, performedBy } from '../perform.ts'
import { type OwnOperationName, ownOperations } from './operations.ts'
import { type InstitutionUser, type Own, ownOf } from './own.ts'
import type { OwnOperation } from './row.ts'

/**
 * Carries out commands of institutions, for a user who has the permission. Arguments are checked, changes get their
 * entry in the audit log, as of operators.
 */
export function createPerformOwn(node: NodeParts, log: Pick<Log, 'error'>) {
  return (
    name: OwnOperationName,
    args: Record<string, unknown>,
    user: InstitutionUser & { email: string },
    isStillAllowed: () => Promise<boolean>,
  ): Promise<Performed> => {
    const operation: OwnOperation = ownOperations[name]
    const command = commandOf<Own>(name, operation, node, () => ownOf(node, user), { isOwner: true })
    const about = { command: `institution.${name}`, who: user.email }
    return performedBy(() => command(args, user.email, isStillAllowed), log, about)
  }
}
