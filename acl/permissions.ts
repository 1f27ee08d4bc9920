import { isInstitutionUrn } from '../event/format.ts'
import { type EventClass, eventClasses, isEventClass } from '../event/kind.ts'
import { checkTopicFilter, filterContains } from '../event/topic.ts'
import { radioTree } from './access.ts'

/** A request for a credential, not checked yet. */
export interface CredentialRequest {
  role: string
  label: string
  institutions?: readonly string[]
  classes?: readonly string[]
  filters?: readonly string[]
  clientIdPrefix?: string | undefined
}

/** Publishers and subscribers log in over MQTT, readers over HTTPS (open.md §4). */
export const roles = ['publisher', 'subscriber', 'reader'] as const
type Role = (typeof roles)[number]

/** The permissions of a credential. Arrays that do not apply to the role are empty. */
export interface Permissions {
  role: Role
  label: string
  institutions: readonly string[]
  filters: readonly string[]
  classes: readonly EventClass[]
  /** What the client ids of all its clients begin with. Undefined: any client id. */
  clientIdPrefix?: string
}

/** Longest delay of a scheduled revocation, milliseconds. A longer delay is probably a typing error. */
export const maxRevokeAfterMs = 3650 * 24 * 3600 * 1000

/**
 * Checks a request. Returns the permissions that the request describes, or its first error. The error names the field
 * and the expected value. The function uses no state of the hub, because the CLI calls it too.
 */
export function checkCredentialRequest(request: CredentialRequest): Permissions | { error: string } {
  const { role, label } = request
  if (!isRole(role)) return { error: `role must be one of ${roles.join(', ')}, not ${quoted(role)}` }
  if (!/^[a-z0-9-]{1,32}$/.test(label)) {
    return { error: `label must be 1 to 32 of a-z, 0-9 and "-", not ${quoted(label)}` }
  }
  const institutions = distinct(request.institutions)
  const classes = distinct(request.classes)
  const filters = distinct(request.filters)
  const error =
    role === 'publisher'
      ? wrongForPublisher(institutions, classes, filters)
      : wrongForReading(role, institutions, classes, filters)
  const { clientIdPrefix } = request
  const wrong = error ?? (clientIdPrefix === undefined ? undefined : checkPrefix(role, clientIdPrefix))
  if (wrong !== undefined) return { error: wrong }
  const permissions = { role, label, institutions, filters, classes: classes.filter(isEventClass) }
  return clientIdPrefix === undefined ? permissions : { ...permissions, clientIdPrefix }
}

/** Why the client ids of a credential cannot begin like this, or undefined. */
function checkPrefix(role: Role, prefix: string): string | undefined {
  if (role === 'reader') return 'clientIdPrefix is for publishers and subscribers; a reader has no client id'
  if (clientIdPrefixForm.test(prefix)) return undefined
  return `clientIdPrefix must be 1 to 64 letters, digits and . _ : -, not ${quoted(prefix)}`
}

const clientIdPrefixForm = /^[A-Za-z0-9._:-]{1,64}$/

/** Why this cannot be the id of an institution, or undefined. */
function checkInstitution(institution: string): string | undefined {
  if (isInstitutionUrn(institution)) return undefined
  return `institution must be an institution URN (urn:org:institution:<id>), not ${quoted(institution)}`
}

/** Why this cannot be a class of events, or undefined. */
function checkClass(cls: string): string | undefined {
  return isEventClass(cls) ? undefined : `class must be one of ${eventClasses.join(', ')}, not ${quoted(cls)}`
}

function wrongForPublisher(
  institutions: readonly string[],
  classes: readonly string[],
  filters: readonly string[],
): string | undefined {
  if (filters.length > 0) return 'allow is for subscribers and readers; a publisher needs institution'
  if (institutions.length === 0)
    return 'institution is required: a publisher needs at least one institution URN'
  return firstDefined(institutions.map(checkInstitution)) ?? firstDefined(classes.map(checkClass))
}

function wrongForReading(
  role: Exclude<Role, 'publisher'>,
  institutions: readonly string[],
  classes: readonly string[],
  filters: readonly string[],
): string | undefined {
  if (institutions.length > 0) return `institution is for publishers; a ${role} needs allow`
  if (classes.length > 0) return `class is for publishers; a ${role} needs allow`
  if (filters.length === 0)
    return `allow is required: a ${role} needs at least one filter within ${radioTree}`
  return firstDefined(filters.map(checkPermittedFilter))
}

function checkPermittedFilter(filter: string): string | undefined {
  const malformed = checkTopicFilter(filter)
  if (malformed !== undefined) return `allow must be a topic filter, not ${quoted(filter)}: ${malformed}`
  if (filter.split('/').includes('')) return `allow must have no empty level, not ${quoted(filter)}`
  if (!filterContains(radioTree, filter))
    return `allow must be a filter within ${radioTree}, not ${quoted(filter)}`
  return undefined
}

function isRole(text: string): text is Role {
  return roles.some((role) => role === text)
}

function distinct(values: readonly string[] = []): string[] {
  return [...new Set(values)]
}

function firstDefined(values: readonly (string | undefined)[]): string | undefined {
  return values.find((value) => value !== undefined)
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
