import { isInstitutionUrn } from '../../event/format.ts'

/** A permission of a user over HTTPS (service.md §5). `operate` is for operators of the hub itself. */
export type Permission = (typeof permissions)[number]
export const permissions = ['publish', 'subscribe', 'operate'] as const

/** A user of the HTTPS API. Every user belongs to one institution (service.md §1). */
export interface User {
  userId: string
  email: string
  institutionId: string
  permissions: readonly Permission[]
  /** Whether a link that was mailed to the address has been used. */
  emailVerified: boolean
  createdAt: string
}

/** A user as an operator typed it, not checked yet. */
export interface UserRequest {
  email: string
  institution: string
  permissions?: readonly string[]
}

/** Permissions if the operator names none. All earlier users of the HTTPS API had these. */
const usualPermissions: readonly Permission[] = ['publish', 'subscribe']

/** Checks a user request. The CLI also calls this, before it asks the node. */
export function checkUserRequest(
  request: UserRequest,
): Pick<User, 'email' | 'institutionId' | 'permissions'> | { error: string } {
  const wrong = checkEmail(request.email) ?? checkInstitution(request.institution)
  if (wrong !== undefined) return { error: wrong }
  const asked = [...new Set(request.permissions ?? [])]
  const unknown = asked.find((permission) => !isPermission(permission))
  if (unknown !== undefined) {
    return { error: `permission must be one of ${permissions.join(', ')}, not ${JSON.stringify(unknown)}` }
  }
  return {
    email: normalEmail(request.email),
    institutionId: request.institution,
    permissions: asked.length > 0 ? asked.filter(isPermission) : usualPermissions,
  }
}

/** An error text if this cannot be the e-mail address of a user, else undefined. */
function checkEmail(email: string): string | undefined {
  if (email.length <= 254 && emailPattern.test(email)) return undefined
  return `email must be an e-mail address, not ${JSON.stringify(email)}`
}

/** An address in lower case, as addresses are compared. */
export function normalEmail(email: string): string {
  return email.toLowerCase()
}

/** Matches an address that mail can be sent to. Control characters are excluded: they would reach mail headers. */
export const emailPattern = /^[^\s@<>(),;:"\\\p{C}]+@[^\s@<>(),;:"\\\p{C}]+$/u

function checkInstitution(institution: string): string | undefined {
  if (isInstitutionUrn(institution)) return undefined
  return `institution must be an institution URN (urn:org:institution:<id>), not ${JSON.stringify(institution)}`
}

function isPermission(text: string): text is Permission {
  return permissions.some((permission) => permission === text)
}
