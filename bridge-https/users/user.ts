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

/** The user that an operator adds. The schema of the command has checked the fields (`operations/users.ts`). */
export interface UserRequest {
  email: string
  institution: string
  permissions?: readonly Permission[]
}

/** Permissions if the operator names none. All earlier users of the HTTPS API had these. */
export const usualPermissions: readonly Permission[] = ['publish', 'subscribe']

/** An address in lower case, as addresses are compared. */
export function normalEmail(email: string): string {
  return email.toLowerCase()
}

/** Matches an address that mail can be sent to. Control characters are excluded: they would reach mail headers. */
export const emailPattern = /^[^\s@<>(),;:"\\\p{C}]+@[^\s@<>(),;:"\\\p{C}]+$/u
